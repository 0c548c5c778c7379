/** What a user could take instead. Installed only by `npm run bench -- --peers`, into a folder of their own. */
export const peers = [];
