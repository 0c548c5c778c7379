/** Just enough of an assembler for the loops of simd-limit.mjs: no compiler stands between the measurement and the machine. */

export function unsigned(n) {
  const bytes = [];
  for (let rest = n; ; rest >>>= 7) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest & 127) | 128);
  }
}

function signed(n) {
  const bytes = [];
  for (let rest = n; ; rest >>= 7) {
    const low = rest & 127;
    if (rest >> 6 === 0 || rest >> 6 === -1) return [...bytes, low];
    bytes.push(low | 128);
  }
}

const list = (items) => [...unsigned(items.length), ...items.flat()];
const section = (id, body) => [id, ...unsigned(body.length), ...body];
const simd = (opcode) => [0xfd, ...unsigned(opcode)];
const i32 = 0x7f;
const f32 = 0x7d;
const v128 = 0x7b;

export const get = (local) => [0x20, ...unsigned(local)];
export const set = (local) => [0x21, ...unsigned(local)];
export const vectorLoad = (offset) => [...simd(0x00), 4, ...unsigned(offset)];
export const splat = (x) => [0x43, ...new Uint8Array(Float32Array.of(x).buffer), ...simd(0x13)];
export const add = simd(0xe4);
export const multiply = simd(0xe6);
export const multiplyAdd = simd(0x105); // f32x4.relaxed_madd
export const xor = simd(0x51);
export const advance = (local, bytes) => [...get(local), 0x41, ...signed(bytes), 0x6a, ...set(local)];

/** Repeats `body` as often as parameter 0 says. */
export const loop = (body) => [0x03, 0x40, ...body, ...get(0), 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b];

/** The first lane of the sum of vectors: so that no engine may leave out what made them. */
export const firstLaneOfSum = (locals) => [...locals.flatMap((local, i) => [...get(local), ...(i > 0 ? add : [])]), ...simd(0x1f), 0];

/** A module that exports f(count, pointer) → f32, whose locals from 2 on are vectors, and its memory. */
export function assemble({ vectors, body, bytes = 0 }) {
  const code = [...list([[...unsigned(vectors), v128]]), ...body, 0x0b];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list([[0x60, ...list([[i32], [i32]]), ...list([[f32]])]])),
    ...section(3, list([[0]])),
    ...section(5, list([[0, ...unsigned(Math.ceil(bytes / 65536))]])),
    ...section(7, list([[1, 0x66, 0, 0], [1, 0x6d, 2, 0]])), // biome-ignore format: one row
    ...section(10, list([[...unsigned(code.length), ...code]])),
  ]);
}
