/** The workloads of workloads.json with their seeded inputs, and what each costs. Batch is 1, heads come before positions. */

/** A workload with its defaults filled in; `group` is its list in the file: prefill, decode, layer, small, ... */
export function complete(workload, group) {
  return { kvHeads: workload.heads, seqLenK: workload.seqLenQ, causal: false, only: "all", group, ...workload };
}

export function allWorkloads({ ratios, ...groups }) {
  return Object.entries(groups).flatMap(([group, list]) => list.map((workload) => complete(workload, group)));
}

/** First and one past the last key that query t sees. */
export function visibleKeys({ seqLenK, causal, window }, t) {
  return [window ? Math.max(0, t - window.left) : 0, Math.min(seqLenK, causal ? t + 1 : window ? t + window.right + 1 : seqLenK)];
}

/** Operations of the matrix products: 4·h·t·s·d, half of it when causal, only what is seen in a window; 8·t·m² for a layer's projections. */
export function flops(w) {
  let pairs = w.seqLenQ * w.seqLenK * (w.causal ? 0.5 : 1);
  if (w.window) pairs = sum(w.seqLenQ, (t) => visibleKeys(w, t)[1] - visibleKeys(w, t)[0]);
  return 4 * w.heads * pairs * w.headDim + (w.embedDim ? 8 * w.seqLenQ * w.embedDim ** 2 : 0);
}

/** Bytes of keys and values: what a decoding step has to read. */
export const cacheBytes = (w) => 2 * 4 * w.kvHeads * w.seqLenK * w.headDim;

/** What a workload's rate counts: operations, or the bytes that a decoding step reads. */
export const unitsOf = (w) => (w.group === "decode" ? cacheBytes(w) : flops(w));

export const describe = (w) =>
  [
    `${w.heads}${w.kvHeads === w.heads ? "" : `/${w.kvHeads}`} ${w.heads === 1 ? "head" : "heads"}`,
    w.seqLenQ === w.seqLenK ? `${w.seqLenQ}` : `${w.seqLenQ} × ${w.seqLenK}`,
    `head_dim ${w.headDim}`,
    ...(w.embedDim ? [`embed_dim ${w.embedDim}`] : []),
    ...(w.causal ? ["causal"] : []),
  ].join(", ");

/** query, key, value; for a layer x and, for each projection, a weight [in, out] and a bias. */
export function makeInputs(w) {
  const draw = normal(seedOf(w.id));
  if (!w.embedDim) {
    const keys = w.kvHeads * w.seqLenK * w.headDim;
    return { query: draw(w.heads * w.seqLenQ * w.headDim), key: draw(keys), value: draw(keys) };
  }
  const m = w.embedDim;
  const projection = () => ({ weight: draw(m * m, 1 / Math.sqrt(m)), bias: draw(m, 0.1) });
  return { x: draw(w.seqLenQ * m), q: projection(), k: projection(), v: projection(), o: projection() };
}

function sum(count, term) {
  let total = 0;
  for (let i = 0; i < count; i++) total += term(i);
  return total;
}

function seedOf(text) {
  let seed = 2166136261;
  for (const c of text) seed = Math.imul(seed ^ c.charCodeAt(0), 16777619);
  return seed >>> 0;
}

/** Numbers of standard deviation `std`, from a sum of four uniform ones of a xorshift generator. */
function normal(seed) {
  let state = seed || 1;
  const uniform = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  return (count, std = 1) =>
    Float32Array.from({ length: count }, () => std * Math.sqrt(3) * (uniform() + uniform() + uniform() + uniform() - 2));
}
