/** Writes the models that LiteRT.js runs, with the package flatbuffers. Numbers of fields and operators are those of TFLite's schema.fbs. */
const kFloat = 0;
const kInt = 2;

/** Number of the operator, number of its options' type. */
const operators = {
  ADD: [0, 11],
  FULLY_CONNECTED: [9, 8],
  MUL: [18, 21],
  RESHAPE: [22, 17],
  SOFTMAX: [25, 9],
  TRANSPOSE: [39, 26],
  BATCH_MATMUL: [126, 101],
};

export class TfliteModel {
  #builder;
  #tensors = [];
  #nodes = [];

  constructor(flatbuffers) {
    this.#builder = new flatbuffers.Builder(1 << 16);
  }

  /** A constant if it has data, else an input or a result. Gives its number. */
  tensor(shape, data) {
    return this.#tensors.push({ shape, data, type: data instanceof Int32Array ? kInt : kFloat }) - 1;
  }

  ints(...values) {
    return this.tensor([values.length], Int32Array.from(values));
  }

  /** Adds a node and gives its result. setOptions fills the table of its options. */
  add(operator, inputs, shape, setOptions) {
    const output = this.tensor(shape);
    this.#nodes.push({ operator, inputs, output, setOptions });
    return output;
  }

  finish(inputs, outputs) {
    const b = this.#builder;
    const used = [...new Set(this.#nodes.map(({ operator }) => operator))];
    const constants = this.#tensors.filter(({ data }) => data);
    // Buffer 0 is the empty one, by the format's rule.
    const buffers = [undefined, ...constants].map((constant) => this.#buffer(constant?.data));
    const tensors = this.#tensors.map((tensor, i) => this.#tensor(tensor, i, constants.indexOf(tensor) + 1));
    const nodes = this.#nodes.map((node) => this.#node(node, used.indexOf(node.operator)));
    const graph = this.#table(4, [this.#offsets(tensors), this.#ints(inputs), this.#ints(outputs), this.#offsets(nodes)]);
    const codes = used.map((name) => this.#code(operators[name][0]));
    const lists = { codes: this.#offsets(codes), graphs: this.#offsets([graph]), buffers: this.#offsets(buffers) };
    b.startObject(5);
    b.addFieldInt32(0, 3, 0);
    b.addFieldOffset(1, lists.codes, 0);
    b.addFieldOffset(2, lists.graphs, 0);
    b.addFieldOffset(4, lists.buffers, 0);
    b.finish(b.endObject(), "TFL3");
    return b.asUint8Array();
  }

  #buffer(data) {
    const bytes = data && this.#builder.createByteVector(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    return this.#table(1, [bytes]);
  }

  #tensor({ shape, type }, i, buffer) {
    const b = this.#builder;
    const [sizes, name] = [this.#ints(shape), b.createString(`t${i}`)];
    b.startObject(4);
    b.addFieldOffset(0, sizes, 0);
    b.addFieldInt8(1, type, 0);
    b.addFieldInt32(2, buffer, 0);
    b.addFieldOffset(3, name, 0);
    return b.endObject();
  }

  #node({ operator, inputs, output, setOptions }, code) {
    const b = this.#builder;
    b.startObject(5);
    setOptions?.(b);
    const options = b.endObject();
    const [from, to] = [this.#ints(inputs), this.#ints([output])];
    b.startObject(5);
    b.addFieldInt32(0, code, 0);
    b.addFieldOffset(1, from, 0);
    b.addFieldOffset(2, to, 0);
    b.addFieldInt8(3, operators[operator][1], 0);
    b.addFieldOffset(4, options, 0);
    return b.endObject();
  }

  #code(number) {
    const b = this.#builder;
    b.startObject(4);
    b.addFieldInt8(0, Math.min(number, 127), 0);
    b.addFieldInt32(2, 1, 0);
    b.addFieldInt32(3, number, 0);
    return b.endObject();
  }

  #table(size, offsets) {
    const b = this.#builder;
    b.startObject(size);
    offsets.forEach((offset, field) => {
      if (offset) b.addFieldOffset(field, offset, 0);
    });
    return b.endObject();
  }

  #ints(values) {
    const b = this.#builder;
    b.startVector(4, values.length, 4);
    for (const value of [...values].reverse()) b.addInt32(value);
    return b.endVector();
  }

  #offsets(values) {
    const b = this.#builder;
    b.startVector(4, values.length, 4);
    for (const value of [...values].reverse()) b.addOffset(value);
    return b.endVector();
  }
}
