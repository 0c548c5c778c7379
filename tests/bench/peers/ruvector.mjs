/**
 * ruvector-attention-wasm: one query a call, keys and values as arrays of arrays. So slow that only the rows that are verified are computed; the time
 * is scaled up by their share of the work.
 */
export async function load(_, host) {
  const module = await host.import("ruvector-attention-wasm");
  // Without an argument it fetches its file, which works in browsers only.
  const file = `${host.folder("ruvector-attention-wasm")}ruvector_attention_wasm_bg.wasm`;
  await module.default({ module_or_path: host.isBrowser ? file : (await import("node:fs")).readFileSync(file) });
  return { prepare: (w, inputs, rows) => prepare(module, w, inputs, rows) };
}

/** As many rows are timed. */
const kMostRows = 12;

function prepare(module, w, inputs, sampled) {
  const split = (data, heads, rows) =>
    Array.from({ length: heads }, (_, h) =>
      Array.from({ length: rows }, (_, t) => data.subarray((h * rows + t) * w.headDim, (h * rows + t + 1) * w.headDim)),
    );
  const [query, key, value] = [
    split(inputs.query, w.heads, w.seqLenQ),
    split(inputs.key, w.kvHeads, w.seqLenK),
    split(inputs.value, w.kvHeads, w.seqLenK),
  ];
  const every = w.heads * w.seqLenQ;
  const isSmall = every * w.seqLenK < 1e4;
  const rows = isSmall ? Array.from({ length: every }, (_, i) => i) : sampled;
  const seen = (row) => (w.causal ? (row % w.seqLenQ) + w.seqLenK - w.seqLenQ + 1 : w.seqLenK);
  const attend = (row) => {
    const head = Math.floor(row / w.seqLenQ);
    const g = Math.floor(head / (w.heads / w.kvHeads));
    const n = seen(row);
    return module.scaled_dot_attention(
      query[head][row % w.seqLenQ],
      n < w.seqLenK ? key[g].slice(0, n) : key[g],
      n < w.seqLenK ? value[g].slice(0, n) : value[g],
    );
  };
  const output = new Float32Array(every * w.headDim);
  let timed = rows; // all rows once, to be verified; then a few of them
  const run = () => {
    for (const row of timed) output.set(attend(row), row * w.headDim);
    timed = fewer;
    return output;
  };
  const fewer = isSmall ? rows : rows.filter((_, i) => i % Math.ceil(rows.length / kMostRows) === 0);
  const all = Array.from({ length: every }, (_, row) => seen(row)).reduce((a, b) => a + b);
  return { run, share: fewer.reduce((sum, row) => sum + seen(row), 0) / all };
}
