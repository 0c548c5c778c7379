/** loadAttention: where the file comes from, and what is said when it is not there or something else. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Attention, AttentionError, loadAttention, tensor } from "attention-wasm";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { packageFolder } from "./package-folder.js";

const dist = packageFolder;
const file = join(dist, "attention.simd.wasm");
const bytes = readFileSync(file);
const folder = mkdtempSync(join(tmpdir(), "attention wasm 100% "));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const works = (attn: Attention) => {
  const { output } = attn.scaledDotProductAttention(tensor([[0], [0]]), tensor([[0], [0]]), tensor([[2], [4]]), { causal: true });
  expect(Array.from(output.data)).toEqual([2, 3]);
};
const rejected = async (load: Promise<unknown>): Promise<AttentionError> => {
  try {
    await load;
  } catch (error) {
    expect(error).toBeInstanceOf(AttentionError);
    return error as AttentionError;
  }
  throw new Error("nothing was rejected");
};
const put = (name: string, content: string | Uint8Array) => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

describe("sources", () => {
  it("P05: URL, path, bytes, Response, Module and promises of them", async () => {
    const module = await WebAssembly.compile(bytes);
    const copy = put("with space and %.wasm", bytes);
    const typed = { headers: { "content-type": "application/wasm" } };
    const sources = [
      pathToFileURL(file),
      pathToFileURL(file).href,
      file,
      copy,
      pathToFileURL(copy),
      bytes,
      new Uint8Array(bytes),
      new Uint8Array(bytes).buffer,
      new DataView(new Uint8Array(bytes).buffer),
      module,
      Promise.resolve(module),
      new Response(bytes),
      new Response(bytes, typed),
      Promise.resolve(new Response(bytes, typed)),
      `data:application/wasm;base64,${bytes.toString("base64")}`,
    ];
    for (const wasm of sources) {
      const attn = await loadAttention({ wasm });
      expect(attn.variant).toBe("simd");
      expect(attn.selection.reason).toBe("the given file");
      works(attn);
    }
  });

  it("P08: a ready Module needs no compiling, not even of the smallest thing", async () => {
    const module = await WebAssembly.compile(bytes);
    const forbidden = (["compile", "compileStreaming", "validate", "instantiateStreaming"] as const).map((name) =>
      vi.spyOn(WebAssembly, name).mockImplementation(() => {
        throw new WebAssembly.CompileError("code generation disallowed by embedder");
      }),
    );
    const attn = await loadAttention({ wasm: module });
    for (const spy of forbidden) spy.mockRestore();
    works(attn);
  });

  it("P05: what is not the file is named, with what was found", async () => {
    const html = "<!doctype html><html><body>Not found</body></html>";
    const other = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0]);
    const failing = Promise.reject(new Error("no net"));
    failing.catch(() => {}); // its turn comes last
    const cases: [unknown, RegExp][] = [
      [put("page.wasm", html), /page\.wasm: .* an HTML page that begins with "<!doctype html>/],
      [pathToFileURL(put("page2.wasm", html)), /page2\.wasm: .*HTML/],
      [put("empty.wasm", ""), /an empty file/],
      [put("text.wasm", "hello"), /5 bytes that begin with "hello"/],
      [put("other.wasm", other), /other\.wasm: .* of another version/],
      [put("cut.wasm", bytes.subarray(0, 1000)), /cut\.wasm: .* 1000 bytes of WebAssembly that this engine can't compile/],
      [join(folder, "missing.wasm"), /missing\.wasm: .* no readable file/],
      [pathToFileURL(join(folder, "missing2.wasm")), /missing2\.wasm: .* no readable file/],
      [new Response(html, { headers: { "content-type": "text/html" } }), /HTML page \(content type text\/html\)/],
      [new Response(html, { headers: { "content-type": "application/wasm" } }), /HTML page/],
      [new Response("", { status: 404, statusText: "Not Found" }), /404 Not Found/],
      [new TextEncoder().encode(html), /the given bytes: .*HTML page/],
      [new WebAssembly.Module(other), /another version/],
      [failing, /no net/],
      ["http://127.0.0.1:1/attention.wasm", /http:\/\/127\.0\.0\.1:1\/attention\.wasm: .* no answer/],
    ];
    for (const [wasm, message] of cases) {
      const error = await rejected(loadAttention({ wasm: wasm as string }));
      expect(error.code).toBe("load");
      expect(error.message).toMatch(message);
    }
    for (const wasm of [3, {}, [], null, true])
      expect((await rejected(loadAttention({ wasm: wasm as never }))).message).toMatch(/^options\.wasm: expected a URL/);
    works(await loadAttention());
  });

  it("M10: a module whose functions are not ours, or whose version is another, never leaves a load pending", async () => {
    const names = WebAssembly.Module.exports(new WebAssembly.Module(bytes));
    expect(names.length).toBeGreaterThan(0);
    // A module with our export names, each a function that traps: as far from ours as a file of another version can be.
    const leb = (n: number): number[] => (n < 128 ? [n] : [(n & 127) | 128, ...leb(n >> 7)]);
    const section = (id: number, content: number[]) => [id, ...leb(content.length), ...content];
    const exported = names.map(({ name, kind }) => {
      const text = [...new TextEncoder().encode(name)];
      return [...leb(text.length), ...text, kind === "memory" ? 2 : kind === "table" ? 1 : kind === "global" ? 3 : 0, 0];
    });
    const fake = Uint8Array.from([
      0,
      97,
      115,
      109,
      1,
      0,
      0,
      0,
      ...section(1, [1, 0x60, 0, 0]),
      ...section(3, [1, 0]),
      ...section(4, [1, 0x70, 0, 0]),
      ...section(5, [1, 0, 1]),
      ...section(6, [1, 0x7f, 0, 0x41, 0, 0x0b]),
      ...section(7, [...leb(exported.length), ...exported.flat()]),
      ...section(10, [1, 3, 0, 0, 0x0b]),
    ]);
    expect(WebAssembly.validate(fake)).toBe(true);
    const error = await rejected(loadAttention({ wasm: fake }));
    expect(error.code).toBe("load");
    expect(error.message).toMatch(/another version/);
  });
});

describe("over http", () => {
  let server: Server;
  let base: string;
  let requests = 0;
  let answer: "good" | "html" | "missing" | "untyped" | "broken" = "good";
  beforeAll(async () => {
    server = createServer((_, response) => {
      requests++;
      if (answer === "html") response.writeHead(200, { "content-type": "text/html" }).end("<!DOCTYPE html><title>app</title>");
      else if (answer === "missing") response.writeHead(404).end();
      else if (answer === "broken") {
        response
          .writeHead(200, { "content-type": "application/wasm", "content-length": String(bytes.length) })
          .write(bytes.subarray(0, 500));
        setTimeout(() => response.destroy(), 20);
      } else response.writeHead(200, answer === "good" ? { "content-type": "application/wasm" } : {}).end(bytes);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    base = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  });
  afterAll(() => server.close());

  it("M10: concurrent loads fetch and compile once and give an instance each", async () => {
    const compile = vi.spyOn(WebAssembly, "compile");
    const streaming = vi.spyOn(WebAssembly, "compileStreaming");
    for (const kind of ["good", "untyped"] as const) {
      answer = kind;
      requests = 0;
      compile.mockClear();
      streaming.mockClear();
      const url = `${base}/once-${kind}.wasm`;
      const [a, b, c] = await Promise.all([
        loadAttention({ wasm: url }),
        loadAttention({ wasm: new URL(url) }),
        loadAttention({ wasm: url }),
      ]);
      expect(requests).toBe(1);
      expect(compile.mock.calls.length + streaming.mock.calls.length).toBe(1);
      expect(a).not.toBe(b);
      a.dispose();
      works(b);
      works(c);
      works(await loadAttention({ wasm: url }));
      expect(requests).toBe(1);
    }
    compile.mockRestore();
    streaming.mockRestore();
  });

  it("M10: a load that failed is tried again by the next call", async () => {
    for (const kind of ["missing", "html", "broken"] as const) {
      answer = kind;
      const url = `${base}/retry-${kind}.wasm`;
      const both = await Promise.all([rejected(loadAttention({ wasm: url })), rejected(loadAttention({ wasm: url }))]);
      for (const error of both) {
        expect(error.code).toBe("load");
        expect(error.message).toContain(url);
      }
      if (kind === "html") expect(both[0].message).toMatch(/an HTML page \(content type text\/html\) that begins with "<!DOCTYPE html>/);
      answer = "good";
      works(await loadAttention({ wasm: url }));
    }
  });
});

describe("choice", () => {
  it("T05: what was chosen, and why, can be read", async () => {
    const attn = await loadAttention();
    expect(attn.selection).toMatchObject({ variant: attn.variant, threads: 1, threadsReason: "1 thread, as asked for" });
    expect(attn.selection.reason).toMatch(attn.variant === "relaxed" ? /passed the self-test/ : /no relaxed SIMD/);
    const baseline = await loadAttention({ variant: "simd" });
    expect(baseline.selection.variant).toBe("simd");
    works(baseline);
  });

  it("T05: a relaxed build by name, or one sentence", async () => {
    const { variant } = await loadAttention();
    if (variant === "relaxed") works(await loadAttention({ variant: "relaxed" }));
    else
      expect((await rejected(loadAttention({ variant: "relaxed" }))).message).toBe(
        'This engine has no relaxed SIMD; variant "auto" or "simd" works in it.',
      );
  });

  it("T05: an engine without SIMD is told so in one sentence", async () => {
    const validate = vi.spyOn(WebAssembly, "validate").mockReturnValue(false);
    const error = await rejected(loadAttention());
    validate.mockRestore();
    expect(error.code).toBe("load");
    expect(error.message).toMatch(/^This engine has no WebAssembly SIMD.*\.$/);
    works(await loadAttention());
  });

  it("T05: wrong numbers: the relaxed build gives way, the baseline is an error", async () => {
    // The package is copied and its self-test made to expect something else: as if the engine computed wrongly.
    const run = (name: string, patch: (text: string) => string, script: string): string => {
      const target = join(folder, name);
      mkdirSync(target, { recursive: true });
      cpSync(dist, target, { recursive: true });
      writeFileSync(join(target, "package.json"), '{ "type": "module" }');
      const path = join(target, "instantiate.js");
      const text = readFileSync(path, "utf8");
      const patched = patch(text);
      expect(patched).not.toBe(text);
      writeFileSync(path, patched);
      writeFileSync(join(target, "script.mjs"), `import { loadAttention } from "./index.js";\n${script}`);
      return execFileSync(process.execPath, [join(target, "script.mjs")], { encoding: "utf8" });
    };
    const all = run(
      "wrong",
      (text) => text.replace("Math.sqrt(width)", "2"),
      "await loadAttention().catch((error) => console.log(error.code, error.message));",
    );
    expect(all).toMatch(/^load .*attention\.simd\.wasm: this engine computes wrong numbers with the baseline build/);
    const relaxed = run(
      "wrong-relaxed",
      (text) => text.replace("Math.sqrt(width)", "(variantOf(engine) === 'relaxed' ? 2 : Math.sqrt(width))"),
      "const { variant, selection } = await loadAttention(); console.log(variant, '-', selection.reason);",
    );
    expect(relaxed).toMatch(/^simd - (the relaxed build failed the self-test|the engine has no relaxed SIMD)/);
  });

  it("options are checked", async () => {
    const cases: [object, RegExp][] = [
      [{ variant: "fast" }, /^options\.variant: /],
      [{ variant: null }, /^options\.variant: /],
      [{ threads: 0 }, /^options\.threads: /],
      [{ threads: 1.5 }, /^options\.threads: /],
      [{ threads: "2" }, /^options\.threads: /],
      [{ thread: 2 }, /perhaps threads/],
      [{ url: "x" }, /one of/],
    ];
    for (const [options, message] of cases) {
      const error = await rejected(loadAttention(options));
      expect(error.code).toBe("option");
      expect(error.message).toMatch(message);
    }
    expect((await rejected(loadAttention(null as never))).code).toBe("option");
    works(await loadAttention({ wasm: undefined, variant: undefined, threads: undefined }));
  });
});

describe("Node", () => {
  it("P04: from any working directory, from a path with a space and a %", () => {
    const target = join(folder, "a b%20c%", "dist");
    cpSync(dist, target, { recursive: true });
    writeFileSync(join(folder, "a b%20c%", "package.json"), '{ "type": "module" }');
    const script = join(folder, "a b%20c%", "script.js");
    writeFileSync(
      script,
      'import { loadAttention } from "./dist/index.js"; const { variant } = await loadAttention(); console.log(variant);',
    );
    for (const cwd of ["/", folder])
      expect(execFileSync(process.execPath, [script], { cwd, encoding: "utf8" })).toMatch(/^(simd|relaxed)\n$/);
  });

  it("P03: the files name no Node module in a form that bundlers follow, use no eval and await nothing at import", () => {
    for (const name of ["index.js", "load.js", "wasm-source.js", "features.js", "instance.js", "memory.js", "inline.js"]) {
      const text = readFileSync(join(dist, name), "utf8");
      expect(text).not.toMatch(/from\s*"node:|require\(|import\("node:|new Function|\beval\(/);
      expect(text).not.toMatch(/^(export )?(const|let) .*= await /m);
    }
  });
});
