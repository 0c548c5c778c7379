/** What the page has to show, calculated in float64 from the same words and weights, without the library. */
import { readWordTable } from "../../../web/examples/files.mjs";
import { embed, kEmbedDim, weightsFor } from "../../../web/examples/model.mjs";
import { selfAttentionFloat64 } from "../../../web/examples/reference.mjs";
import { tokenize } from "../../../web/examples/tokenize.mjs";

const table = await readWordTable();

export function expectedRun(sentence: string, { numHeads = 4, causal = false } = {}) {
  const tokens = tokenize(sentence, table);
  const seqLen = tokens.length;
  const { weights, output } = selfAttentionFloat64(embed(tokens, table), weightsFor(numHeads, table), {
    numHeads,
    embedDim: kEmbedDim,
    causal,
  });
  const words = tokens.map((token) => token.text);
  const at = (head: number, row: number, column: number) => weights[(head * seqLen + row) * seqLen + column] as number;
  /** Mean of some heads at a cell. */
  const mean = (heads: readonly number[], row: number, column: number) =>
    heads.reduce((sum, head) => sum + at(head, row, column), 0) / heads.length;
  return { words, weights, output, at, mean };
}
