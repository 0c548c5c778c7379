/** How a page reaches the peers: each by the file that its maker means for browsers. */
const script = (src) =>
  new Promise((resolve, reject) =>
    document.head.append(Object.assign(document.createElement("script"), { src, onload: resolve, onerror: reject })),
  );

const ways = {
  "onnxruntime-web": () => import("/peers/onnxruntime-web/dist/ort.wasm.min.mjs"),
  "@tensorflow/tfjs-core": () => script("/peers/@tensorflow/tfjs-core/dist/tf-core.min.js").then(() => globalThis.tf),
  "@tensorflow/tfjs-backend-wasm": () =>
    script("/peers/@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js").then(() => globalThis.tf.wasm),
  "@litertjs/core": () => import("@litertjs/core"),
  flatbuffers: () => import("/peers/flatbuffers/mjs/flatbuffers.js"),
  "ruvector-attention-wasm": () => import("/peers/ruvector-attention-wasm/ruvector_attention_wasm.js"),
};

export const browserHost = {
  isBrowser: true,
  importPackage: () => import("/package/dist/index.js"),
  folder: (name) => `/peers/${name}/`,
  import: (name) => ways[name](),
};
