/** WordPiece, BERT's way of cutting a text into tokens of its vocabulary. */

const kMaxLetters = 100;

/**
 * @param {Map<string, number>} vocabulary
 * @param {{ lowerCase: boolean }} options
 */
export function wordPiece(vocabulary, { lowerCase }) {
  const words = [...vocabulary.keys()];
  const idOf = (/** @type {string} */ token) => {
    const id = vocabulary.get(token);
    if (id === undefined) throw new Error(`the vocabulary has no ${token}`);
    return id;
  };
  const names = new Map(words.map((word) => [vocabulary.get(word), word]));
  return {
    /** @param {string} text */
    encode: (text) => [idOf("[CLS]"), ...split(text, lowerCase).flatMap((word) => pieces(word, vocabulary, idOf("[UNK]"))), idOf("[SEP]")],
    /** @param {number} id */
    label: (id) => names.get(id) ?? String(id),
  };
}

/** Words and signs: blanks separate, every sign stands alone. @param {string} text @param {boolean} lowerCase */
function split(text, lowerCase) {
  const plain = lowerCase
    ? text
        .toLowerCase()
        .normalize("NFD")
        .replace(/\p{Mn}/gu, "")
    : text;
  return (
    plain
      .replace(/(?!\s)\p{Cc}|\ufffd/gu, "")
      .match(/[\p{P}$+<=>^`|~]|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\s\p{P}$+<=>^`|~\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+/gu) ??
    []
  );
}

/** The longest piece of the vocabulary first, again and again. @param {string} word @param {Map<string, number>} vocabulary @param {number} unknown */
function pieces(word, vocabulary, unknown) {
  const letters = [...word];
  if (letters.length > kMaxLetters) return [unknown];
  const ids = [];
  for (let start = 0; start < letters.length; ) {
    let end = letters.length;
    let id;
    for (; end > start && id === undefined; end--) id = vocabulary.get((start > 0 ? "##" : "") + letters.slice(start, end).join(""));
    if (id === undefined) return [unknown];
    ids.push(id);
    start = end + 1;
  }
  return ids;
}
