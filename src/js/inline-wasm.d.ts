// The build writes this module: the baseline WebAssembly file as base64 text.
export declare const wasmBase64: string;
