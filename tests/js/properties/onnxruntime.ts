/** The peer: ONNX Runtime's own Attention, given models of one node that are written here. */
import * as ort from "onnxruntime-web";
import type { AttentionAttributes } from "attention-wasm/onnx";
import { encodeSingleNode } from "../../onnx/proto.mjs";
import type { OnnxArray, OnnxCall } from "./draw-onnx.js";

ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

/** Inputs and outputs by position, as ONNX's specification has them. */
const INPUTS = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"] as const;
const OUTPUTS = ["Y", "present_key", "present_value", "qk_matmul_output"] as const;

const sessions = new Map<string, Promise<ort.InferenceSession>>();

/** Computes all outputs that belong to the given inputs. Rejects where the peer refuses. */
export async function runPeer({ inputs, attributes }: OnnxCall): Promise<Record<string, OnnxArray>> {
  const session = await sessionFor(inputs, attributes);
  const feeds: Record<string, ort.Tensor> = {};
  for (const name of INPUTS) {
    const input = inputs[name];
    if (input === undefined) continue;
    const { data, shape } = input;
    if (data instanceof Float32Array) feeds[name] = new ort.Tensor("float32", data, shape);
    else if (data instanceof Uint8Array) feeds[name] = new ort.Tensor("bool", data, shape);
    else feeds[name] = new ort.Tensor("int64", BigInt64Array.from(data, BigInt), shape);
  }
  const results = await session.run(feeds);
  return Object.fromEntries(
    Object.entries(results).map(([name, { data, dims }]) => [name, { data: data as Float32Array, shape: [...dims] }]),
  );
}

/** A session serves every size of the same ranks. */
function sessionFor(inputs: OnnxCall["inputs"], attributes: AttentionAttributes): Promise<ort.InferenceSession> {
  const opset = inputs.nonpad_kv_seqlen === undefined ? 23 : 24; // opset 23 has no seventh input
  const present = INPUTS.slice(0, opset === 23 ? 6 : 7).map((name) => {
    const input = inputs[name];
    if (input === undefined) return { name: "" };
    const type = input.data instanceof Float32Array ? "float32" : input.data instanceof Uint8Array ? "bool" : "int64";
    return { name, type, rank: input.shape.length };
  });
  const hasPast = inputs.past_key !== undefined;
  const outputs = OUTPUTS.map((name) =>
    name.startsWith("present") && !hasPast ? { name: "" } : { name, rank: name === "Y" ? inputs.Q.shape.length : 4 },
  );
  const given = Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined)) as Record<string, number>;
  const key = JSON.stringify([present, given]);
  let session = sessions.get(key);
  if (session === undefined) {
    const model = encodeSingleNode({ type: "Attention", opset, attributes: given, inputs: present, outputs });
    session = ort.InferenceSession.create(model, { logSeverityLevel: 3, graphOptimizationLevel: "disabled" });
    sessions.set(key, session);
    if (sessions.size > 60) void forgetOldest();
  }
  return session;
}

async function forgetOldest(): Promise<void> {
  const [key, session] = sessions.entries().next().value!;
  sessions.delete(key);
  await (await session).release();
}
