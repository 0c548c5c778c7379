/// <reference lib="esnext.disposable" preserve="true" />
/** `Symbol.dispose` where the engine has it; elsewhere the symbol that the usual polyfills agree on is not there yet, and this one stands in. */
export const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);
