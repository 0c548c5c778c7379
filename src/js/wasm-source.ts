/** From whatever says where the WebAssembly file is to a compiled module, with errors that say what was found instead. */
import { describeValue, fail, failWith } from "./errors.js";
import { isNode } from "./features.js";

/** Where the WebAssembly file comes from: its address, its bytes, the response of a fetch, or the module that it compiles to. */
export type WasmSource = URL | string | BufferSource | Response | WebAssembly.Module;

// One fetch and one compilation per file, however many instances are made of it. Failures are not kept, so that the next load tries again.
const compiledByUrl = new Map<string, Promise<WebAssembly.Module>>();

/** Compiles what `source` leads to. Rejects with an AttentionError "load" that names the source; never stays pending by itself. */
export async function compileSource(source: WasmSource | PromiseLike<WasmSource>): Promise<WebAssembly.Module> {
  let given: WasmSource;
  try {
    given = await source;
  } catch (cause) {
    return failLoad("options.wasm", `the promise was rejected (${messageOf(cause)})`, cause);
  }
  if (given instanceof WebAssembly.Module) return given;
  if (typeof Response === "function" && given instanceof Response)
    return compileResponse(given, given.url === "" ? "the given Response" : given.url);
  if (given instanceof URL || typeof given === "string") return compileUrl(given);
  if (isBytes(given)) return compileBytes(given, "the given bytes");
  return fail("option", "options.wasm", "a URL, a string, bytes, a Response or a WebAssembly.Module", describeValue(given));
}

/** Compiles the file at an address, once for all. In Node a string without a scheme is a path. */
export function compileUrl(address: URL | string): Promise<WebAssembly.Module> {
  const key = String(address);
  let compiled = compiledByUrl.get(key);
  if (compiled === undefined) {
    compiled = readAndCompile(address);
    compiledByUrl.set(key, compiled);
    compiled.catch(() => compiledByUrl.delete(key));
  }
  return compiled;
}

async function readAndCompile(address: URL | string): Promise<WebAssembly.Module> {
  const isUrl = address instanceof URL || /^[a-z][a-z0-9+.-]+:/i.test(address); // two letters at least: "C:" is a drive
  if (isNode() && (!isUrl || String(address).startsWith("file:"))) {
    const bytes = await readFileInNode(isUrl ? new URL(String(address)) : String(address), String(address));
    return compileBytes(bytes, String(address));
  }
  let response: Response;
  try {
    response = await fetch(address, { credentials: "same-origin" });
  } catch (cause) {
    return failLoad(String(address), `no answer (${messageOf(cause)})`, cause);
  }
  return compileResponse(response, String(address));
}

async function compileResponse(response: Response, name: string): Promise<WebAssembly.Module> {
  if (!response.ok) return failLoad(name, `the answer ${response.status} ${response.statusText}`.trimEnd());
  if (response.bodyUsed) return failLoad(name, "a Response that was read already");
  const type = response.headers.get("content-type") ?? "";
  // Engines compile while the file arrives, and keep the machine code, only this way; it needs the right type.
  if (/^application\/wasm\s*(;|$)/i.test(type) && typeof WebAssembly.compileStreaming === "function") {
    const spare = response.clone();
    try {
      return await WebAssembly.compileStreaming(response);
    } catch {
      return compileBytes(await readBody(spare, name), name); // once more by hand: it finds out what is wrong
    }
  }
  return compileBytes(await readBody(response, name), name, type);
}

async function readBody(response: Response, name: string): Promise<ArrayBuffer> {
  try {
    return await response.arrayBuffer();
  } catch (cause) {
    return failLoad(name, `an answer that broke off (${messageOf(cause)})`, cause);
  }
}

async function compileBytes(source: BufferSource, name: string, type = ""): Promise<WebAssembly.Module> {
  const bytes = ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);
  if (bytes[0] !== 0 || bytes[1] !== 0x61 || bytes[2] !== 0x73 || bytes[3] !== 0x6d) return failLoad(name, describeBytes(bytes, type));
  try {
    // Engines refuse DataViews and shared memory here.
    return await WebAssembly.compile(bytes.buffer instanceof ArrayBuffer ? (bytes as Uint8Array<ArrayBuffer>) : bytes.slice());
  } catch (cause) {
    return failLoad(name, `${bytes.length} bytes of WebAssembly that this engine can't compile (${messageOf(cause)})`, cause);
  }
}

function isBytes(value: unknown): value is BufferSource {
  if (ArrayBuffer.isView(value)) return true;
  const tag = Object.prototype.toString.call(value);
  return tag === "[object ArrayBuffer]" || tag === "[object SharedArrayBuffer]";
}

function describeBytes(bytes: Uint8Array, type: string): string {
  const typed = type === "" ? "" : ` (content type ${type})`;
  if (bytes.length === 0) return `an empty file${typed}`;
  const start = String.fromCharCode(...bytes.subarray(0, 60))
    .replace(/[^\x20-\x7e]+/g, " ")
    .trim();
  const kind = /^\s*<(!doctype|html|head|body)/i.test(start) ? "an HTML page" : `${bytes.length} bytes`;
  return `${kind}${typed} that begin${kind === "an HTML page" ? "s" : ""} with ${JSON.stringify(start)}`;
}

interface FileSystem {
  readonly promises: { readFile(path: string | URL): Promise<Uint8Array> };
}

// Bundlers for browsers look for Node modules by name; this one is asked for at run time, only in Node, and in a way that leaves them nothing to find.
async function readFileInNode(path: string | URL, name: string): Promise<BufferSource> {
  const specifier = ["node", "fs"].join(":");
  const { process } = globalThis as unknown as { process: { getBuiltinModule?: (id: string) => unknown } };
  try {
    const fs = (process.getBuiltinModule?.(specifier) ??
      (await import(/* webpackIgnore: true */ /* @vite-ignore */ specifier))) as FileSystem;
    return (await fs.promises.readFile(path)) as Uint8Array<ArrayBuffer>;
  } catch (cause) {
    return failLoad(name, `no readable file (${messageOf(cause)})`, cause);
  }
}

/** Throws "load": what was expected to be the WebAssembly file, and what was found. */
export function failLoad(name: string, got: string, cause?: unknown): never {
  const expected = "the WebAssembly file of this version of attention-wasm";
  return failWith("load", `${name}: expected ${expected}, got ${got}`, { argument: name, expected, got, cause });
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
