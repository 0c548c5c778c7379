/** Reading safetensors: right files give their tensors, wrong ones an error, and no byte outside the file is ever asked for. */
import { fromSafetensors, openSafetensors, type SafetensorsSource } from "attention-wasm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bfloat16, type FileType, fileOf, rounded, safetensorsBytes } from "./safetensors-file.js";
import { thrown } from "./thrown.js";

const entry = (dtype: string, shape: unknown, begin: unknown, end: unknown) => ({ dtype, shape, data_offsets: [begin, end] });

describe("files", () => {
  const tensors = {
    "a.weight": { data: [1, -2.5, 0.1, 1e30, 1e-8, 65504], shape: [2, 3] },
    "a.bias": { data: [0.3333], shape: [1] },
    "b.scalar": { data: [7], shape: [] },
    "b.none": { data: [], shape: [0, 4] },
  };
  it.each(["F32", "F16", "BF16"] as const)("%s", (type) => {
    const bytes = safetensorsBytes(tensors, () => type, { format: "pt" });
    for (const [name, { data, shape }] of Object.entries(fromSafetensors(bytes, { dtype: "float32" }))) {
      expect(shape).toEqual(tensors[name as keyof typeof tensors].shape);
      const expected = tensors[name as keyof typeof tensors].data.map((number) =>
        type === "F16" && number > 65519 ? Number.POSITIVE_INFINITY : rounded(number, type),
      );
      expect(Array.from(data)).toEqual(expected);
    }
    const raw = fromSafetensors(bytes)["a.weight"]!;
    expect(raw.dtype).toBe({ F32: "float32", F16: "float16", BF16: "bfloat16" }[type]);
    if (type === "BF16") expect(Array.from(raw.data)).toEqual(tensors["a.weight"].data.map(bfloat16));
  });

  it("a prefix, integers left out, any alignment", () => {
    const types: Record<string, FileType> = { ids: "I64", half: "F16", "a.weight": "F32" };
    const file = safetensorsBytes(
      { half: { data: [1], shape: [1] }, ids: { data: [1, 2], shape: [2] }, ...tensors },
      (name) => types[name] ?? "F32",
    );
    for (let shift = 0; shift < 8; shift++) {
      const larger = new Uint8Array(file.length + 16).fill(255);
      larger.set(file, shift);
      const got = fromSafetensors(larger.subarray(shift, shift + file.length), { prefix: "a." });
      expect(Object.keys(got).sort()).toEqual(["bias", "weight"]);
      expect(Array.from(got["weight"]!.data)).toEqual(tensors["a.weight"].data.map(Math.fround));
    }
    expect(Object.keys(fromSafetensors(file)).sort()).toEqual(["a.bias", "a.weight", "b.none", "b.scalar", "half"]);
  });

  it("piece by piece: only the header and what is asked for", async () => {
    const bytes = safetensorsBytes(tensors, () => "F32", { format: "pt" });
    const asked: [number, number][] = [];
    const source: SafetensorsSource = {
      size: bytes.length,
      read: (offset, length) => {
        asked.push([offset, length]);
        return bytes.slice(offset, offset + length);
      },
    };
    const file = await openSafetensors(source);
    expect(file.names).toEqual(Object.keys(tensors));
    expect(file.metadata).toEqual({ format: "pt" });
    expect(file.info("a.weight")).toEqual({ dtype: "F32", shape: [2, 3], byteLength: 24 });
    expect(asked.length).toBe(2);
    expect(Array.from((await file.read("a.bias")).data)).toEqual([Math.fround(0.3333)]);
    expect(asked[2]![1]).toBe(4);
    expect(Object.keys(await file.readAll({ prefix: "b." }))).toEqual(["scalar", "none"]);
    expect(asked.every(([offset, length]) => offset + length <= bytes.length)).toBe(true);
    const blob = await openSafetensors(new Blob([bytes]));
    expect((await blob.read("a.weight")).data).toEqual(fromSafetensors(bytes)["a.weight"]!.data);
    // Rows of a table.
    expect(await file.read("a.weight", { rows: { first: 1, count: 1 } })).toMatchObject({
      shape: [1, 3],
      data: Float32Array.of(1e30, 1e-8, 65504),
    });
    expect(asked.at(-1)![1]).toBe(12);
    await expect(file.read("a.weight", { rows: { first: 1, count: 2 } })).rejects.toMatchObject({
      code: "option",
      argument: "options.rows",
    });
    await expect(file.read("b.scalar", { rows: { first: 0, count: 1 } })).rejects.toMatchObject({ code: "option" });
    await expect(file.read("c")).rejects.toMatchObject({ code: "option" });
    await expect(openSafetensors({ size: 100, read: () => new Uint8Array(3) })).rejects.toMatchObject({ code: "shape" });
  });
});

describe("damage is an error that says what is wrong", () => {
  const one = { a: entry("F32", [2], 0, 8) };
  it.each([
    ["no bytes", new Uint8Array(0)],
    ["too short", new Uint8Array(7)],
    [
      "a header longer than the file",
      (() => {
        const f = fileOf("{}", 0);
        f[0] = 200;
        return f;
      })(),
    ],
    [
      "a header of 2^63 bytes",
      (() => {
        const f = fileOf("{}", 0);
        f[7] = 128;
        return f;
      })(),
    ],
    ["no JSON", fileOf("{nope", 0)],
    [
      "no UTF-8",
      (() => {
        const f = fileOf('{"aaaa":1}', 0);
        f[11] = 255;
        return f;
      })(),
    ],
    ["an array", fileOf("[]", 0)],
    ["null", fileOf("null", 0)],
    ["an entry that is a number", fileOf('{"a":3}', 0)],
    ["an unknown type", fileOf(JSON.stringify({ a: entry("F33", [2], 0, 8) }), 8)],
    ["a type of Object.prototype", fileOf(JSON.stringify({ a: entry("constructor", [2], 0, 8) }), 8)],
    ["a shape that is none", fileOf(JSON.stringify({ a: entry("F32", "2", 0, 8) }), 8)],
    ["a negative size", fileOf(JSON.stringify({ a: entry("F32", [-2], 0, 8) }), 8)],
    ["sizes that overflow", fileOf(JSON.stringify({ a: entry("F32", [2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1, 4], 0, 8) }), 8)],
    ["offsets outside of the file", fileOf(JSON.stringify({ a: entry("F32", [4], 0, 16) }), 8)],
    ["offsets in the wrong order", fileOf(JSON.stringify({ a: entry("F32", [2], 8, 0) }), 8)],
    ["a fractional offset", fileOf(JSON.stringify({ a: entry("F32", [2], 0.5, 8.5) }), 9)],
    ["an offset beyond 2^53", fileOf('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9007199254740993]}}', 8)],
    ["a size that does not fit", fileOf(JSON.stringify({ a: entry("F32", [3], 0, 8) }), 8)],
    ["an overlap", fileOf(JSON.stringify({ ...one, b: entry("F32", [2], 4, 12) }), 12)],
    ["the same place twice", fileOf(JSON.stringify({ ...one, b: entry("F32", [2], 0, 8) }), 8)],
    ["a gap", fileOf(JSON.stringify({ ...one, b: entry("F32", [2], 12, 20) }), 20)],
    ["bytes at the end", fileOf(JSON.stringify(one), 9)],
    ["a cut end", safetensorsBytes({ a: { data: [1, 2], shape: [2] } }).subarray(0, -1)],
    ["metadata that is no text", fileOf(JSON.stringify({ __metadata__: { a: 1 }, ...one }), 8)],
  ])("%s", (_, bytes) => {
    const caught = thrown(() => fromSafetensors(bytes));
    expect(caught).toMatchObject({ name: "AttentionError", code: "shape" });
    expect(caught.message).toMatch(/^safetensors: .*(expected|no JSON)/);
  });

  it("names that mean something to JavaScript are ordinary names", () => {
    const file = safetensorsBytes(JSON.parse('{"__proto__":{"data":[1],"shape":[1]},"constructor":{"data":[2],"shape":[1]}}'));
    const header = new TextDecoder().decode(file);
    expect(header).toContain("constructor");
    expect(Object.keys(fromSafetensors(file)).sort()).toEqual(["__proto__", "constructor"]);
    expect(({} as { data?: unknown }).data).toBeUndefined();
  });
});

describe("drawn files", () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 });
  const names = fc.uniqueArray(
    fc.string({ minLength: 1, maxLength: 6 }).filter((name) => name !== "__metadata__" && name !== "__proto__"),
    { maxLength: 5 },
  );

  it("what is written is read", () => {
    fc.assert(
      fc.property(
        names,
        fc.array(sizes, { minLength: 5, maxLength: 5 }),
        fc.array(fc.constantFrom<FileType>("F32", "F16", "BF16"), { minLength: 5, maxLength: 5 }),
        (list, shapes, types) => {
          const tensors: Record<string, { data: number[]; shape: number[] }> = Object.create(null);
          list.forEach((name, i) => {
            const count = shapes[i]!.reduce((a, b) => a * b, 1);
            tensors[name] = { data: Array.from({ length: count }, (_, j) => j - count / 2), shape: shapes[i]! };
          });
          const got = fromSafetensors(
            safetensorsBytes(tensors, (name) => types[list.indexOf(name)]!),
            { dtype: "float32" },
          );
          expect(Object.keys(got).sort()).toEqual([...list].sort());
          for (const name of list)
            expect([got[name]!.shape, Array.from(got[name]!.data)]).toEqual([tensors[name]!.shape, tensors[name]!.data]);
        },
      ),
    );
  });

  it("any bytes, and any change of a right file: its tensors or an AttentionError, never a read outside", async () => {
    const right = safetensorsBytes({ a: { data: [1, 2, 3], shape: [3] }, b: { data: [4, 5], shape: [1, 2] } }, (name) =>
      name === "a" ? "F32" : "BF16",
    );
    const check = async (bytes: Uint8Array) => {
      const outside: string[] = [];
      const source: SafetensorsSource = {
        size: bytes.length,
        read(offset, length) {
          if (!(offset >= 0 && length >= 0 && offset + length <= bytes.length)) outside.push(`${offset} + ${length} of ${bytes.length}`);
          return bytes.slice(offset, offset + length);
        },
      };
      let ranged: unknown;
      let whole: unknown;
      try {
        ranged = await (await openSafetensors(source)).readAll();
      } catch (caught) {
        expect(caught).toMatchObject({ name: "AttentionError", code: "shape" });
      }
      try {
        whole = fromSafetensors(bytes);
      } catch (caught) {
        expect(caught).toMatchObject({ name: "AttentionError", code: "shape" });
      }
      expect(outside).toEqual([]);
      expect(whole).toEqual(ranged);
    };
    await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), check));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(right.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        fc.nat(right.length),
        async (changes, cut) => {
          const bytes = right.slice(0, cut > right.length / 2 ? right.length : right.length - cut);
          for (const [at, value] of changes) bytes[at % bytes.length] = value;
          await check(bytes);
        },
      ),
      { numRuns: 500 },
    );
    // Numbers of the header replaced by others: sizes and offsets that nearly fit.
    const header = '{"a":{"dtype":"F32","shape":[@],"data_offsets":[@,@]},"b":{"dtype":"F16","shape":[@,@],"data_offsets":[@,@]}}';
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.integer({ min: -1, max: 20 }), fc.constantFrom(2 ** 31, 2 ** 32, 2 ** 53, 1e300, 0.5)), {
          minLength: 7,
          maxLength: 7,
        }),
        (drawn) => {
          let next = 0;
          return check(
            fileOf(
              header.replace(/@/g, () => String(drawn[next++])),
              20,
            ),
          );
        },
      ),
      { numRuns: 500 },
    );
  });
});
