/** ONNX's operators, called as a user of the installed package calls them. */
import { attention, rotaryEmbedding, tensorScatter } from "attention-wasm/onnx";

/** Names of inputs and outputs by position, as ONNX's specification has them. */
const operators = {
  Attention: {
    inputs: ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"],
    outputs: ["Y", "present_key", "present_value", "qk_matmul_output"],
    call: attention,
  },
  RotaryEmbedding: { inputs: ["input", "cos_cache", "sin_cache", "position_ids"], outputs: ["output"], call: rotaryEmbedding },
  TensorScatter: { inputs: ["past_cache", "update", "write_indices"], outputs: ["present_cache"], call: tensorScatter },
};

/** Operators of the attention family that the package does not offer: their cases are counted as skipped. */
const notOffered = ["LinearAttention", "FlexAttention"];

/** "run" or "skip"; undefined for operators that have nothing to do with this package. */
export function planFor(type) {
  return Object.hasOwn(operators, type) ? "run" : notOffered.includes(type) ? "skip" : undefined;
}

/**
 * Computes the node's outputs.
 * @returns {{ name: string, tensor: { data: ArrayLike<number>, shape: number[], dtype?: string } }[]} in the node's order
 */
export function runNode(attn, node, inputs) {
  const { inputs: inputNames, outputs: outputNames, call } = operators[node.type];
  const named = {};
  inputs.forEach((tensor, position) => {
    if (tensor !== undefined) named[inputNames[position]] = asArgument(tensor);
  });
  const result = call(attn, named, node.attributes);
  return node.outputs.map((name, position) =>
    name === "" ? undefined : { name: outputNames[position], tensor: result[outputNames[position]] },
  );
}

function asArgument({ type, data, shape }) {
  return type === "float16" ? { data, shape, dtype: "float16" } : { data, shape };
}
