/** Loads what the page needs to compute: the word vectors and the library. A failure can be tried again, without a reload. */
import { loadAttention, type Attention } from "attention-wasm";
import { parseWordTable, type WordTable } from "./examples/word-table.mjs";
import vectorsUrl from "./examples/words-100d.f16.bin?url";
import wordsUrl from "./examples/words-100d.txt?url";

export interface Live {
  readonly attn: Attention;
  readonly table: WordTable;
}

/** progress: a sentence, and how much of the download is there (0 to 1). */
export async function loadLive(progress: (text: string, share: number) => void): Promise<Live> {
  progress("Loading the word vectors and the WebAssembly module …", 0);
  const stop = new AbortController();
  try {
    const [attn, table] = await Promise.all([
      loadAttention().catch((error: unknown) => {
        throw new Error(`The WebAssembly module could not be loaded: ${messageOf(error)}`, { cause: error });
      }),
      loadTable(stop.signal, (share) => {
        // What is still on its way after a failure must not write over it.
        if (!stop.signal.aborted) progress(`Loading the word vectors … ${Math.round(share * 100)} %`, share);
      }),
    ]);
    return { attn, table };
  } finally {
    stop.abort(); // one failure ends the other download; after success there is nothing left to end
  }
}

async function loadTable(signal: AbortSignal, progress: (share: number) => void): Promise<WordTable> {
  try {
    const [words, vectors] = await Promise.all([fetchBytes(wordsUrl, signal, () => {}), fetchBytes(vectorsUrl, signal, progress)]);
    return parseWordTable(new TextDecoder().decode(words), vectors);
  } catch (error) {
    throw new Error(`The word vectors could not be loaded: ${messageOf(error)}`, { cause: error });
  }
}

async function fetchBytes(url: string, signal: AbortSignal, progress: (share: number) => void): Promise<ArrayBuffer> {
  const name = url.split("/").pop();
  let response: Response;
  try {
    response = await fetch(url, { signal });
  } catch {
    throw new Error(`${name} did not arrive. Is the connection there?`);
  }
  if (!response.ok) throw new Error(`the server answers ${response.status} for ${name}.`);
  if (response.headers.get("content-type")?.startsWith("text/html")) throw new Error(`the server sends a web page in place of ${name}.`);
  const total = Number(response.headers.get("content-length"));
  // The length is that of the compressed file where the server compresses: then only the end is known.
  if (!response.body || !total || response.headers.has("content-encoding")) return response.arrayBuffer();
  const parts: Uint8Array[] = [];
  let received = 0;
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    received += part.value.length;
    progress(Math.min(1, received / total));
  }
  const bytes = new Uint8Array(received);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes.buffer;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
