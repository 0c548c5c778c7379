import { expect, test } from "vitest";
import { readWordTable } from "./files.mjs";
import { tokenize } from "./tokenize.mjs";

const table = await readWordTable();
/** "text" when found, "text=word" for a stand-in, "text?" when unknown. @param {string} sentence */
const read = (sentence) =>
  tokenize(sentence, table)
    .map(({ text, word, kind }) => (kind === "found" ? text : kind === "unknown" ? `${text}?` : `${text}=${word}`))
    .join(" ");

test.each([
  ["The animal, tired.", "The animal , tired ."],
  ["I don't, you can't, we won't", "I=me do n't=not , you can n't=not , we will n't=not"],
  ["it's the animal’s; they're", "it 's=is the animal's=animal ; they 're=are"],
  ["a 7 and 365", "a=an 7=seven and 365=number"],
  ["zebras yawned softly, skipping", "zebras=zebra yawned=yawn softly=soft , skipping=skip"],
  ["zorgblatt 🙂 猫", "zorgblatt? 🙂? 猫?"],
  ["“yes” — no…", '“=" yes ”=" —=- no …=.'],
  ["  \n\t ", ""],
])("%j", (sentence, expected) => {
  expect(read(sentence)).toBe(expected);
});

test("control characters never become a token: they would reach the terminal", () => {
  expect(read("cats\u001b[31m\u0007and\u0000dogs")).toBe("cats [=( 31=number m? and dogs");
});

test("nothing of the prototype of objects is taken for a word", () => {
  expect(read("constructor __proto__ toString")).not.toContain("=undefined");
});
