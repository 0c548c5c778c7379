/** What a user could take instead. Installed only by `npm run bench -- --peers`, into a folder of their own. */
const peer = (id, adapter, more) => ({ id, adapter: `../peers/${adapter}`, threads: 1, isPeer: true, ...more });

export const peers = [
  peer("onnxruntime-web", "onnxruntime-web.mjs", { takesSmall: true, supports: fitsOnnxruntime }),
  peer("onnxruntime-web, 2 threads", "onnxruntime-web.mjs", { threads: 2, supports: fitsOnnxruntime }),
  peer("LiteRT.js", "litert.mjs"),
  peer("LiteRT.js relaxed", "litert.mjs", { relaxed: true }),
  // Its build with threads needs relaxed SIMD.
  peer("LiteRT.js relaxed, 2 threads", "litert.mjs", { relaxed: true, threads: 2 }),
  peer("TensorFlow.js wasm", "tensorflow.mjs", { slow: true }),
  peer("ruvector-attention-wasm", "ruvector.mjs", { slow: true, takesSmall: true, supports: (w) => !w.embedDim }),
];

/** Its Attention fails with an overflow where 2 · t · s · d reaches 2^31. */
function fitsOnnxruntime(w) {
  return 2 * w.seqLenQ * w.seqLenK * w.headDim < 2 ** 31;
}
