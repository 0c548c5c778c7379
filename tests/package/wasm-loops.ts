/**
 * Reads WebAssembly far enough to say which instructions stand in which loop of which function. Binaries without names are read as well as others:
 * functions are known by what they do.
 */

/** One loop, with what stands in it but in no loop inside it. */
export interface Loop {
  /** How often each instruction occurs, by its opcode; those behind a prefix are prefix · 0x1000 + number. */
  readonly count: Map<number, number>;
  /** Functions called. */
  readonly calls: number[];
  readonly inner: Loop[];
}

export interface WasmFunction {
  readonly index: number;
  /** Value types of its parameters and results, as bytes. */
  readonly params: number[];
  readonly results: number[];
  /** The body as a loop that runs once. */
  readonly body: Loop;
}

/** Value types. */
export const kF32 = 0x7d;
export const kF64 = 0x7c;
const kSimd = 0xfd * 0x1000;

/** The instructions that the tests look for. */
export const op = {
  f32Mul: 0x94,
  f64Mul: 0xa2,
  f64First: 0x99, // f64.abs ... f64.copysign
  f64Last: 0xa6,
  demote: 0xb6, // f32.demote_f64
  promote: 0xbb, // f64.promote_f32
  load: kSimd + 0x00, // v128.load
  splat: kSimd + 0x09, // v128.load32_splat
  store: kSimd + 0x0b, // v128.store
  shiftLeft: kSimd + 0xab, // i32x4.shl
  add: kSimd + 0xe4, // f32x4.add
  mul: kSimd + 0xe6, // f32x4.mul
  relaxedFirst: kSimd + 0x100,
  relaxedLast: kSimd + 0x13f,
  relaxedMadd: kSimd + 0x105,
  relaxedNmadd: kSimd + 0x106,
} as const;

export function allLoops(loop: Loop): Loop[] {
  return loop.inner.flatMap((inner) => [inner, ...allLoops(inner)]);
}

export const innermost = ({ body }: WasmFunction) => allLoops(body).filter(({ inner }) => inner.length === 0);

export const times = (loop: Loop, opcode: number) => loop.count.get(opcode) ?? 0;

export function readFunctions(bytes: Uint8Array): WasmFunction[] {
  const reader = new Reader(bytes);
  reader.at = 8; // magic and version
  let types: { params: number[]; results: number[] }[] = [];
  let signatures: number[] = [];
  let imported = 0;
  const functions: WasmFunction[] = [];
  while (reader.at < bytes.length) {
    const id = reader.byte();
    const end = reader.unsigned() + reader.at;
    if (id === 1)
      types = reader.list(() => ({
        form: reader.byte(),
        params: reader.list(() => reader.byte()),
        results: reader.list(() => reader.byte()),
      }));
    if (id === 2) imported = reader.list(() => reader.importKind()).filter((kind) => kind === 0).length;
    if (id === 3) signatures = reader.list(() => reader.unsigned());
    if (id === 10) {
      for (const [i, body] of reader.list(() => reader.body()).entries())
        functions.push({ index: imported + i, ...types[signatures[i]!]!, body });
    }
    reader.at = end;
  }
  return functions;
}

/** How many numbers follow memory.init, data.drop, memory.copy, ... (0xfc 8 and on); the conversions before them have none. */
const kBulk = 0xfc * 0x1000;
const kBulkNumbers = [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1];

/** Blocks, jumps, variables, sizes of memory, constants: a block's type and a signed constant are as long as an unsigned number. */
const kWithOneNumber = new Set([
  ...[0x02, 0x03, 0x04, 0x06, 0x07, 0x08, 0x09, 0x0c, 0x0d, 0x12, 0x18],
  ...[0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x3f, 0x40, 0x41, 0x42, 0xd0, 0xd2],
]);

class Reader {
  at = 0;
  readonly #bytes: Uint8Array;
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new Error("the file ends in the middle");
    return byte;
  }

  unsigned(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  }

  list<Item>(item: () => Item): Item[] {
    return Array.from({ length: this.unsigned() }, item);
  }

  #limits(): void {
    const flags = this.unsigned();
    this.unsigned();
    if (flags & 1) this.unsigned();
  }

  #skip(bytes: number): void {
    this.at += bytes;
  }

  importKind(): number {
    for (let name = 0; name < 2; name++) this.#skip(this.unsigned());
    const kind = this.byte();
    if (kind === 1 || kind === 3 || kind === 4) this.#skip(1); // type of a table or global, attribute of a tag
    if (kind === 1 || kind === 2) this.#limits();
    else if (kind === 3) this.#skip(1);
    else this.unsigned();
    return kind;
  }

  body(): Loop {
    const end = this.unsigned() + this.at;
    for (let groups = this.unsigned(); groups > 0; groups--) {
      this.unsigned(); // so many locals
      this.byte(); // of this type
    }
    const whole: Loop = { count: new Map(), calls: [], inner: [] };
    // One entry per open block: the loop whose instructions follow.
    const open = [whole];
    while (this.at < end) {
      const current = open.at(-1) ?? whole;
      const opcode = this.#instruction(current);
      if (opcode === 0x03) {
        const loop: Loop = { count: new Map(), calls: [], inner: [] };
        current.inner.push(loop);
        open.push(loop);
      } else if (opcode === 0x02 || opcode === 0x04 || opcode === 0x06) open.push(current);
      else if (opcode === 0x0b || opcode === 0x18) open.pop();
    }
    if (this.at !== end) throw new Error("a function does not end where it says");
    return whole;
  }

  /** Goes past one instruction and counts it. */
  #instruction(loop: Loop): number {
    let opcode = this.byte();
    if (opcode >= 0xfc) opcode = opcode * 0x1000 + this.unsigned();
    loop.count.set(opcode, (loop.count.get(opcode) ?? 0) + 1);
    if (opcode === 0x10) loop.calls.push(this.unsigned());
    else this.#immediates(opcode);
    return opcode;
  }

  #numbers(count: number): void {
    for (let i = 0; i < count; i++) this.unsigned();
  }

  #immediates(opcode: number): void {
    if (opcode >= 0xfe * 0x1000)
      this.#numbers(opcode === 0xfe * 0x1000 + 3 ? 1 : 2); // atomics
    else if (opcode >= kSimd) this.#simdImmediates(opcode - kSimd);
    else if (opcode >= kBulk) this.#numbers(kBulkNumbers[opcode - kBulk] ?? 0);
    else if (opcode === 0x43) this.#skip(4);
    else if (opcode === 0x44) this.#skip(8);
    else if (opcode === 0x0e) this.#numbers(this.unsigned() + 1);
    else if (opcode === 0x1c) this.#numbers(this.unsigned());
    else if (opcode === 0x11 || opcode === 0x13 || (opcode >= 0x28 && opcode <= 0x3e)) this.#numbers(2);
    else if (kWithOneNumber.has(opcode)) this.#numbers(1);
  }

  #simdImmediates(number: number): void {
    if (number === 12 || number === 13)
      this.at += 16; // v128.const, i8x16.shuffle
    else if (number <= 11 || number === 92 || number === 93) this.#numbers(2);
    else if (number >= 84 && number <= 91)
      this.#numbers(3); // a lane of memory
    else if (number >= 21 && number <= 34) this.#numbers(1); // a lane
  }
}
