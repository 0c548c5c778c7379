/** One set of weights under the names of each family, for tests. */
import { randomTensor } from "./reference.js";
import type { ReferenceWeights } from "./layer-reference.js";

export interface Numbers {
  data: Float32Array;
  shape: number[];
}
export type Named = Record<string, Numbers>;

/** Weights [out, in] of a layer, with all biases. */
export function drawWeights(embed: number, heads: number, kvHeads: number, dim: number, seed = 1) {
  const size = 1.5 / Math.sqrt(embed);
  return {
    wq: randomTensor([heads * dim, embed], seed, 2 * size),
    wk: randomTensor([kvHeads * dim, embed], seed + 1, 2 * size),
    wv: randomTensor([kvHeads * dim, embed], seed + 2, size),
    wo: randomTensor([embed, heads * dim], seed + 3, size),
    bq: randomTensor([heads * dim], seed + 4, 0.3),
    bk: randomTensor([kvHeads * dim], seed + 5, 0.3),
    bv: randomTensor([kvHeads * dim], seed + 6, 0.3),
    bo: randomTensor([embed], seed + 7, 0.3),
  } satisfies ReferenceWeights;
}
export type Drawn = ReturnType<typeof drawWeights>;

export function transpose({ data, shape }: Numbers): Numbers {
  const [rows, columns] = shape as [number, number];
  return {
    data: Float32Array.from({ length: data.length }, (_, i) => data[(i % rows) * columns + Math.floor(i / rows)]!),
    shape: [columns, rows],
  };
}

/** Below each other: [a, in], [b, in] to [a + b, in]; vectors likewise. */
export function stack(...parts: Numbers[]): Numbers {
  const data = new Float32Array(parts.reduce((sum, part) => sum + part.data.length, 0));
  let at = 0;
  for (const part of parts) {
    data.set(part.data, at);
    at += part.data.length;
  }
  return { data, shape: [parts.reduce((sum, part) => sum + part.shape[0]!, 0), ...parts[0]!.shape.slice(1)] };
}

const reshape = ({ data }: Numbers, shape: number[]): Numbers => ({ data, shape });

/** Names below the attention module. Families with fused matrices need as many key heads as query heads. */
export const families: Record<string, { isFused: boolean; name(w: Drawn, heads: number, kvHeads: number): Named }> = {
  "PyTorch, fused": {
    isFused: true,
    name: (w) => ({
      in_proj_weight: stack(w.wq, w.wk, w.wv),
      in_proj_bias: stack(w.bq, w.bk, w.bv),
      "out_proj.weight": w.wo,
      "out_proj.bias": w.bo,
    }),
  },
  "PyTorch, apart": {
    isFused: true,
    name: (w) => ({
      q_proj_weight: w.wq,
      k_proj_weight: w.wk,
      v_proj_weight: w.wv,
      in_proj_bias: stack(w.bq, w.bk, w.bv),
      "out_proj.weight": w.wo,
      "out_proj.bias": w.bo,
    }),
  },
  BERT: {
    isFused: false,
    name: (w) => ({
      "self.query.weight": w.wq,
      "self.query.bias": w.bq,
      "self.key.weight": w.wk,
      "self.key.bias": w.bk,
      "self.value.weight": w.wv,
      "self.value.bias": w.bv,
      "output.dense.weight": w.wo,
      "output.dense.bias": w.bo,
    }),
  },
  "GPT-2": {
    isFused: true,
    name: (w) => ({
      "c_attn.weight": transpose(stack(w.wq, w.wk, w.wv)),
      "c_attn.bias": stack(w.bq, w.bk, w.bv),
      "c_proj.weight": transpose(w.wo),
      "c_proj.bias": w.bo,
    }),
  },
  Llama: {
    isFused: false,
    name: (w) => ({
      "q_proj.weight": w.wq,
      "k_proj.weight": w.wk,
      "v_proj.weight": w.wv,
      "o_proj.weight": w.wo,
      "q_proj.bias": w.bq,
      "k_proj.bias": w.bk,
      "v_proj.bias": w.bv,
      "o_proj.bias": w.bo,
    }),
  },
  "Vision Transformer": {
    isFused: true,
    name: (w) => ({ "qkv.weight": stack(w.wq, w.wk, w.wv), "qkv.bias": stack(w.bq, w.bk, w.bv), "proj.weight": w.wo, "proj.bias": w.bo }),
  },
  Keras: {
    isFused: false,
    name: (w, heads, kvHeads) => {
      const kernel = (weight: Numbers, count: number) => reshape(transpose(weight), [weight.shape[1]!, count, weight.shape[0]! / count]);
      const bias = (b: Numbers, count: number) => reshape(b, [count, b.shape[0]! / count]);
      return {
        "query/kernel:0": kernel(w.wq, heads),
        "query/bias:0": bias(w.bq, heads),
        "key/kernel:0": kernel(w.wk, kvHeads),
        "key/bias:0": bias(w.bk, kvHeads),
        "value/kernel:0": kernel(w.wv, kvHeads),
        "value/bias:0": bias(w.bv, kvHeads),
        "attention_output/kernel:0": reshape(transpose(w.wo), [heads, w.wo.shape[1]! / heads, w.wo.shape[0]!]),
        "attention_output/bias:0": w.bo,
      };
    },
  },
};
