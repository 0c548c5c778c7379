/** One wrong argument at a time: each gives an AttentionError that names it, nothing is written, and the next call works. */
import { type Attention, AttentionError, loadAttention, tensor } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { randomTensor } from "./reference.js";
import { thrown } from "./thrown.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

type Arguments = [query: unknown, key: unknown, value: unknown, options?: Record<string, unknown>];
const query = randomTensor([2, 4, 3, 8], 1);
const key = randomTensor([2, 2, 5, 8], 2);
const value = randomTensor([2, 2, 5, 6], 3);
const call = (...given: Arguments) =>
  (attn.scaledDotProductAttention as (...given: unknown[]) => { output: { data: Float32Array } })(...given);
const floats = (...shape: number[]) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });

function detached(length: number): Float32Array {
  const array = new Float32Array(length);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

// Everything that can be wrong with a tensor of numbers, whichever argument it is: [what, the value, code, text in the message].
const wrongTensors = (good: { data: Float32Array; shape: number[] }): [string, unknown, string, RegExp][] => {
  const { data, shape } = good;
  const count = data.length;
  return [
    ["undefined", undefined, "dtype", /undefined/],
    ["null", null, "dtype", /null/],
    ["a number", 3, "dtype", /3/],
    ["a string", "abc", "dtype", /"abc"/],
    ["a bare array", data, "dtype", /Float32Array of \d+ elements without a shape/],
    ["nested arrays", [[1, 2]], "dtype", /tensor\(/],
    ["an empty object", {}, "dtype", /no properties/],
    ["no data", { shape }, "dtype", /shape/],
    ["no shape", { data }, "dtype", /data/],
    ["a shape that is a number", { data, shape: 4 }, "dtype", /tensor/],
    ["an array of numbers as data", { data: Array.from(data), shape }, "dtype", /array of/],
    ["Float64Array", { data: new Float64Array(count), shape }, "dtype", /Float64Array.*Float32Array\.from/],
    ["Int32Array", { data: new Int32Array(count), shape }, "dtype", /Int32Array/],
    ["Uint8Array", { data: new Uint8Array(count), shape }, "dtype", /Uint8Array/],
    ["BigInt64Array", { data: new BigInt64Array(count), shape }, "dtype", /BigInt64Array/],
    ["Uint16Array without a dtype", { data: new Uint16Array(count), shape }, "dtype", /float16/],
    ["Uint16Array of another dtype", { data: new Uint16Array(count), shape, dtype: "bfloat16" }, "dtype", /bfloat16/],
    ["a DataView", { data: new DataView(new ArrayBuffer(count * 4)), shape }, "dtype", /DataView/],
    ["one element too few", { data: data.slice(1), shape }, "shape", new RegExp(`${count} elements.*${count - 1}`)],
    ["one element too many", { data: new Float32Array(count + 1), shape }, "shape", new RegExp(`${count} elements.*${count + 1}`)],
    ["a detached array", { data: detached(count), shape }, "shape", /detached/],
    ["a negative size", { data, shape: [-1, ...shape.slice(1)] }, "shape", /-1/],
    ["a size of NaN", { data, shape: [Number.NaN, ...shape.slice(1)] }, "shape", /NaN/],
    ["half a size", { data, shape: [1.5, ...shape.slice(1)] }, "shape", /1\.5/],
    ["a size as text", { data, shape: ["2", ...shape.slice(1)] }, "shape", /whole numbers/],
    ["sizes whose product is 2^32", { data: new Float32Array(0), shape: [65536, 65536, 1, 1] }, "shape", /4294967296/],
    ["rank 0", { data: new Float32Array(1), shape: [] }, "shape", /\[\]/],
    ["rank 1", { data, shape: [count] }, "shape", new RegExp(`\\[${count}\\]`)],
    ["rank 5", { data, shape: [1, ...shape] }, "shape", /\[1, /],
  ];
};

const wrong: [string, string, string, Arguments, RegExp][] = [];
for (const [position, name] of (["query", "key", "value"] as const).entries()) {
  for (const [what, given, code, message] of wrongTensors([query, key, value][position]!)) {
    const arguments_: Arguments = [query, key, value];
    arguments_[position] = given;
    wrong.push([`${name}: ${what}`, name, code, arguments_, message]);
  }
}
for (const [what, given, code, message] of wrongTensors(floats(2, 4, 3, 6))) {
  if (what !== "undefined") wrong.push([`out: ${what}`, "options.out", code, [query, key, value, { out: given }], message]);
}
wrong.push(
  ["key: another rank", "key", "shape", [query, floats(2, 5, 8), value], /rank 4/],
  ["key: another batch size", "key", "shape", [query, floats(3, 2, 5, 8), value], /batch size 2.*batch size 3/],
  ["value: another batch size", "value", "shape", [query, key, floats(3, 2, 5, 6)], /batch size 2.*batch size 3/],
  ["key: another width", "key", "shape", [query, floats(2, 2, 5, 7), value], /headDim 8.*headDim 7/],
  ["key: heads that do not divide", "key", "shape", [query, floats(2, 3, 5, 8), floats(2, 3, 5, 6)], /divides.*4.*3 heads/],
  ["value: another number of heads", "value", "shape", [query, key, floats(2, 4, 5, 6)], /2 heads.*4 heads/],
  ["value: another length", "value", "shape", [query, key, floats(2, 2, 6, 6)], /seqLenK 5.*seqLenK 6/],
  ["query: width 0", "query", "shape", [floats(2, 4, 3, 0), floats(2, 2, 5, 0), value], /headDim of at least 1/],
  ["query: no heads", "query", "shape", [floats(2, 0, 3, 8), floats(2, 0, 5, 8), floats(2, 0, 5, 6)], /at least 1 head/],
);
const options: [string, Record<string, unknown>, string, RegExp?][] = [
  ["casual", { casual: true }, "option", /perhaps causal/],
  ["isCausal", { isCausal: true }, "option", /there is no such option/],
  ["attnMask", { attnMask: null }, "option", /one of|perhaps/],
  ["softCap", { softCap: 3 }, "option", /perhaps softcap/],
  ["causal", { causal: 1 }, "option", /"top-left"/],
  ["causal", { causal: "yes" }, "option", /"bottom-right"/],
  ["causal", { causal: null }, "option"],
  ["causal", { causal: true }, "option", /"top-left".*"bottom-right"/],
  ["alignment", { alignment: "bottom" }, "option"],
  ["alignment", { causal: "top-left", alignment: "bottom-right" }, "option", /top-left.*bottom-right/],
  ["alignment", { window: { left: 1 } }, "option", /"top-left".*"bottom-right"/],
  ["alignment", { alibiSlopes: true }, "option", /"top-left".*"bottom-right"/],
  ["queryOffset", { queryOffset: 0.5 }, "option"],
  ["queryOffset", { queryOffset: [1] }, "shape", /2 elements/],
  ["queryOffset[1]", { queryOffset: [1, Number.NaN] }, "option"],
  ["queryOffset", { causal: "top-left", queryOffset: 1 }, "option"],
  ["window", { window: 3 }, "option"],
  ["window", { window: null }, "option"],
  ["window.rigth", { window: { rigth: 3 } }, "option", /perhaps right/],
  ["window.left", { window: { left: -2 } }, "option"],
  ["window.right", { window: { right: "3" } }, "option"],
  ["keyLengths", { keyLengths: 6 }, "option", /0 to 5.*6/],
  ["keyLengths", { keyLengths: -1 }, "option"],
  ["keyLengths", { keyLengths: [5] }, "shape", /2 elements/],
  ["keyLengths[1]", { keyLengths: [5, 6] }, "option"],
  ["keyLengths[0]", { keyLengths: [0.5, 1] }, "option"],
  ["keyLengths", { keyLengths: "55" }, "dtype"],
  ["keyLengths", { keyLengths: new BigInt64Array(2) }, "dtype", /Number/],
  ["scale", { scale: Number.NaN }, "option"],
  ["scale", { scale: Number.POSITIVE_INFINITY }, "option"],
  ["scale", { scale: "1" }, "option"],
  ["scale", { scale: null }, "option", /null/],
  ["softcap", { softcap: -1 }, "option"],
  ["softcap", { softcap: Number.NaN }, "option"],
  ["alibiSlopes", { causal: "top-left", alibiSlopes: [1, 2] }, "shape", /numHeads 4/],
  ["alibiSlopes[3]", { causal: "top-left", alibiSlopes: [1, 2, 3, Number.NaN] }, "option"],
  ["alibiSlopes", { causal: "top-left", alibiSlopes: false }, "dtype"],
  ["sinks", { sinks: new Float32Array(3) }, "shape", /numHeads 4/],
  ["sinks", { sinks: 1 }, "dtype"],
  ["sinks[0]", { sinks: ["1", 2, 3, 4] }, "dtype"],
  ["returnWeights", { returnWeights: "all" }, "option", /"mean"/],
  ["returnWeights", { returnWeights: null }, "option"],
  ["returnWeights.heads", { returnWeights: { heads: [] } }, "option"],
  ["returnWeights.heads", { returnWeights: {} }, "option"],
  ["returnWeights.heads[0]", { returnWeights: { heads: [4] } }, "option", /0 to 3/],
  ["returnWeights.heads", { returnWeights: { heads: [1, 1] } }, "option"],
  ["returnWeights.head", { returnWeights: { head: [1] } }, "option", /perhaps heads/],
  ["returnLse", { returnLse: 1 }, "option"],
  ["returnScores", { returnScores: true }, "option"],
  ["layout", { layout: "BHSD" }, "option", /"bhsd"/],
  ["layout", { layout: null }, "option"],
  ["mask", { mask: { data: new Uint8Array(8), shape: [2, 4] } }, "shape", /\[2, 4, 3, 5\].*\[2, 4\]/],
  ["mask", { mask: { data: new Uint8Array(15), shape: [1, 1, 1, 3, 5] } }, "shape"],
  ["mask", { mask: { data: new Uint8Array(14), shape: [3, 5] } }, "shape", /15 elements.*14/],
  ["mask", { mask: new Uint8Array(14) }, "shape", /seqLenQ 3 × seqLenK 5/],
  ["mask[1]", { mask: [[true, true], [true]] }, "shape"],
  ["mask[0][1]", { mask: [[true, 1]] }, "dtype"],
  ["mask", { mask: new Float32Array(15) }, "dtype", /bias/],
  ["mask", { mask: 1 }, "dtype"],
  ["bias", { bias: new Uint8Array(15) }, "dtype", /mask/],
  ["bias", { bias: { data: new Float32Array(8), shape: [2, 4] } }, "shape"],
  ["bias", { bias: null }, "dtype"],
  ["out", { out: floats(2, 4, 3, 5) }, "shape", /\[2, 4, 3, 6\]/],
  ["out", { out: { ...floats(2, 4, 3, 6), data: new Uint16Array(144), dtype: "float16" } }, "dtype", /float32/],
];
for (const [name, given, code, message] of options) {
  wrong.push([
    `options.${name}: ${JSON.stringify(given, (_, x) => (typeof x === "bigint" ? String(x) : x))}`,
    `options.${name}`,
    code,
    [query, key, value, given],
    message ?? /./,
  ]);
}

describe("scaledDotProductAttention", () => {
  it.each(wrong)("%s", (_, argument, code, given, message) => {
    const before = Array.from(call(query, key, value).output.data);
    const memory = attn.memory.totalBytes;
    const target = floats(2, 4, 3, 6);
    target.data.fill(7);
    const options_ = given[3] === undefined ? { out: target } : "out" in given[3] ? given[3] : { ...given[3], out: target };
    const error = thrown(() => call(given[0], given[1], given[2], options_));
    expect(error).toBeInstanceOf(AttentionError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(code === "dtype" ? TypeError : RangeError);
    expect(error.name).toBe("AttentionError");
    expect(error.code, error.message).toBe(code);
    expect(error.message).toMatch(message);
    expect(error.message).toContain(argument);
    expect(
      error.argument?.startsWith(argument) || argument.startsWith(error.argument ?? "?"),
      `${error.argument} in ${error.message}`,
    ).toBe(true);
    expect(error.message).not.toMatch(/undefined×|\[object|NaN elements/);
    expect(target.data.every((x) => x === 7)).toBe(true);
    expect(attn.memory.totalBytes).toBe(memory);
    expect(Array.from(call(query, key, value).output.data)).toEqual(before);
  });

  it("options themselves", () => {
    for (const given of [null, 3, "causal", true]) expect(thrown(() => call(query, key, value, given as never)).code).toBe("option");
    expect(call(query, key, value, undefined).output.data.length).toBe(144);
    expect(call(query, key, value, { causal: undefined, mask: undefined, window: undefined, out: undefined }).output.data.length).toBe(144);
  });

  it("the message has name, expected and got", () => {
    const error = thrown(() => call(query, { data: new Float32Array(8192), shape: [2, 2, 64, 64] }, value));
    expect(error.message).toBe("key: expected 16384 elements (shape [2, 2, 64, 64]), got 8192");
    expect(error).toMatchObject({ code: "shape", argument: "key", expected: "16384 elements (shape [2, 2, 64, 64])", got: "8192" });
    expect(String(error)).toMatch(/^AttentionError: key: /);
    expect(error.stack).toMatch(/^AttentionError: key: /);
  });
});

describe("other arguments", () => {
  it("buffer", () => {
    const cases: [unknown, unknown, string][] = [
      [undefined, undefined, "shape"],
      [3, undefined, "shape"],
      [[-1], undefined, "shape"],
      [[1.5], undefined, "shape"],
      [[2 ** 31], undefined, "shape"],
      [[3], { dtype: "int8" }, "option"],
      [[3], { dtype: null }, "option"],
      [[3], { type: "uint8" }, "option"],
      [[2 ** 30, 2], undefined, "memory"],
    ];
    for (const [shape, given, code] of cases) {
      const before = attn.memory;
      const error = thrown(() => (attn.buffer as (...given: unknown[]) => unknown)(shape, given));
      expect(error).toBeInstanceOf(AttentionError);
      expect(error.code, error.message).toBe(code);
      expect(attn.memory).toEqual(before);
    }
  });

  it("M09: no BigInt anywhere", () => {
    expect(typeof attn.memory.maximumBytes).toBe("number");
    expect(thrown(() => call(query, key, value, { scale: 1n })).message).toBe("options.scale: expected a finite number, got the BigInt 1");
    expect(thrown(() => call({ data: new Float32Array(2), shape: [1n, 2n] }, key, value)).code).toBe("shape");
  });

  it("AttentionError can be made and told from others", () => {
    const error = new AttentionError("shape", "text", { argument: "x" });
    expect(error instanceof AttentionError).toBe(true);
    expect(error.argument).toBe("x");
    expect(new RangeError("text") instanceof AttentionError).toBe(false);
    expect((null as unknown) instanceof AttentionError).toBe(false);
  });

  it("views of shared memory are read and written by copying", () => {
    const shared = (given: { data: Float32Array; shape: number[] }) => {
      const data = new Float32Array(new SharedArrayBuffer(given.data.byteLength));
      data.set(given.data);
      return { data, shape: given.shape };
    };
    const out = shared(floats(2, 4, 3, 6));
    const plain = call(query, key, value).output.data;
    const result = call(shared(query), shared(key), shared(value), { out });
    expect(Array.from(result.output.data)).toEqual(Array.from(plain));
    expect(call(shared(query), shared(key), shared(value)).output.data.buffer).toBeInstanceOf(ArrayBuffer);
  });

  it("tensors of other libraries are accepted as they are", () => {
    class OrtTensor {
      constructor(
        readonly type: string,
        readonly data: Float32Array | Uint8Array,
        readonly dims: readonly number[],
      ) {}
    }
    const plain = call(query, key, value, { mask: tensor([[true, false, true, true, false]]) }).output.data;
    const ort = (given: typeof query) => new OrtTensor("float32", given.data, Object.freeze([...given.shape]));
    const mask = new OrtTensor("bool", Uint8Array.of(1, 0, 1, 1, 0), [1, 5]);
    expect(call(ort(query), ort(key), ort(value), { mask }).output.data).toEqual(plain);
  });
});
