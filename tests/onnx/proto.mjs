/** Reads and writes ONNX files: models of one node, and tensors. */
import { readFileSync } from "node:fs";
import protobuf from "protobufjs";

const { root } = protobuf.parse(readFileSync(new URL("onnx-subset.proto", import.meta.url), "utf8"), { keepCase: true });
const Model = root.lookupType("onnx.ModelProto");
const TensorProto = root.lookupType("onnx.TensorProto");

/** TensorProto's numbers of the element types that occur. */
export const ElementType = { float32: 1, int32: 6, int64: 7, bool: 9, float16: 10, float64: 11 };
const nameOfType = new Map(Object.entries(ElementType).map(([name, number]) => [number, name]));
/** AttributeProto's numbers of the attribute types that occur. */
const AttributeType = { float: 1, int: 2, string: 3, ints: 7 };

/**
 * A model of one node.
 * @typedef {{ type: string, domain: string, opset: number, inputs: string[], outputs: string[], attributes: Record<string, number | string | number[]>,
 *             graphInputs: string[], graphOutputs: string[] }} Node
 */

/**
 * The node of a model that consists of one, or undefined for other models.
 * @returns {Node | undefined}
 */
export function decodeSingleNode(bytes) {
  const { graph, opset_import: opsets } = Model.toObject(Model.decode(bytes), { longs: Number, arrays: true });
  if (graph === undefined || graph.node.length !== 1) return undefined;
  const [node] = graph.node;
  const domain = node.domain ?? "";
  return {
    type: node.op_type,
    domain,
    opset: opsets.find((opset) => (opset.domain ?? "") === domain)?.version,
    inputs: node.input,
    outputs: node.output,
    attributes: Object.fromEntries(node.attribute.map((attribute) => [attribute.name, attributeValue(attribute)])),
    graphInputs: graph.input.map((input) => input.name),
    graphOutputs: graph.output.map((output) => output.name),
  };
}

function attributeValue({ type, f, i, s, ints }) {
  if (type === AttributeType.float) return f ?? 0;
  if (type === AttributeType.int) return i ?? 0;
  if (type === AttributeType.string) return new TextDecoder().decode(s);
  if (type === AttributeType.ints) return ints;
  return undefined; // graphs: only operators that are skipped have them
}

/**
 * The bytes of a model of one node. Axes are left open, so a model serves all sizes of its ranks.
 * @param {{ type: string, opset: number, attributes?: object,
 *           inputs: { name: string, type?: string, rank?: number }[], outputs: { name: string, type?: string, rank?: number }[] }} node
 *        inputs and outputs in the operator's order; an absent one has the name ""
 */
export function encodeSingleNode({ type, opset, attributes = {}, inputs, outputs }) {
  const info = ({ name, type: element = "float32", rank = 4 }) => ({
    name,
    type: {
      tensor_type: {
        elem_type: ElementType[element],
        shape: { dim: Array.from({ length: rank }, (_, axis) => ({ dim_param: `${name}_${axis}` })) },
      },
    },
  });
  const named = (list) => list.filter(({ name }) => name !== "");
  const model = {
    ir_version: 10,
    producer_name: "attention-wasm tests",
    opset_import: [{ domain: "", version: opset }],
    graph: {
      name: "one node",
      node: [
        {
          op_type: type,
          input: inputs.map(({ name }) => name),
          output: outputs.map(({ name }) => name),
          attribute: Object.entries(attributes).map(encodeAttribute),
        },
      ],
      input: named(inputs).map(info),
      output: named(outputs).map(info),
    },
  };
  return Model.encode(Model.fromObject(model)).finish();
}

/** Attributes that are floats even where their value is a whole number. */
const FLOAT_ATTRIBUTES = new Set(["scale", "softcap"]);

function encodeAttribute([name, value]) {
  if (typeof value === "string") return { name, type: AttributeType.string, s: new TextEncoder().encode(value) };
  return FLOAT_ATTRIBUTES.has(name) ? { name, type: AttributeType.float, f: value } : { name, type: AttributeType.int, i: value };
}

/**
 * A tensor: `type` is a key of ElementType or "type N"; data is a Float32Array, a Uint16Array of bits (float16), a Uint8Array (bool), an array of numbers
 * (int32, int64) or a Float64Array.
 */
export function decodeTensor(bytes) {
  const message = TensorProto.decode(bytes);
  const tensor = TensorProto.toObject(message, { longs: Number, arrays: true });
  const type = nameOfType.get(tensor.data_type) ?? `type ${tensor.data_type}`;
  const hasRaw = Object.hasOwn(message, "raw_data");
  return { name: tensor.name ?? "", type, shape: tensor.dims, data: hasRaw ? fromRaw(type, tensor.raw_data) : fromFields(type, tensor) };
}

function fromRaw(type, raw) {
  const { buffer } = Uint8Array.from(raw); // a copy of its own is aligned for every element type
  if (type === "float32") return new Float32Array(buffer);
  if (type === "float16") return new Uint16Array(buffer);
  if (type === "float64") return new Float64Array(buffer);
  if (type === "bool") return new Uint8Array(buffer);
  if (type === "int32") return Array.from(new Int32Array(buffer));
  if (type === "int64") return Array.from(new BigInt64Array(buffer), Number);
  throw new Error(`tensors of ${type} are not read here`);
}

function fromFields(type, { float_data, int32_data, int64_data }) {
  if (type === "float32") return Float32Array.from(float_data);
  if (type === "float16") return Uint16Array.from(int32_data);
  if (type === "bool") return Uint8Array.from(int32_data);
  if (type === "int32") return int32_data;
  if (type === "int64") return int64_data;
  throw new Error(`tensors of ${type} are not read here`);
}

/** The bytes of a tensor as decodeTensor gives it. */
export function encodeTensor({ name, type, shape, data }) {
  const typed = type === "int64" ? BigInt64Array.from(data, BigInt) : type === "int32" ? Int32Array.from(data) : data;
  const raw_data = new Uint8Array(typed.buffer, typed.byteOffset, typed.byteLength);
  return TensorProto.encode(TensorProto.fromObject({ name, dims: shape, data_type: ElementType[type], raw_data })).finish();
}
