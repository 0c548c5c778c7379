/** A static host for the folder of a project, below /app/, as where a page is not at the root. */
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };

export interface FolderServer {
  /** Ends with a slash. */
  readonly address: string;
  stop(): void;
}

/** @param headers sent with every file */
export async function serveFolder(folder: string, headers: Record<string, string> = {}): Promise<FolderServer> {
  const server = createServer((request, response) => {
    const path = join(folder, normalize(decodeURIComponent((request.url ?? "/").replace(/^\/app/, "").replace(/\?.*/, ""))));
    if (!existsSync(path) || !statSync(path).isFile()) return response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream", ...headers });
    return createReadStream(path).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/app/`, stop: () => server.close() };
}
