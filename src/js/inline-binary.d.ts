// The build writes this module: the baseline WebAssembly file as base64 text.
declare const base64: string;
export default base64;
