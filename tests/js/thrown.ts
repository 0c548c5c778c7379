import type { AttentionError } from "attention-wasm";

/** What `call` throws; a test whose call throws nothing fails here. */
export function thrown(call: () => unknown): AttentionError {
  try {
    call();
  } catch (caught) {
    return caught as AttentionError;
  }
  throw new Error("nothing was thrown");
}
