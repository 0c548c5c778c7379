/** Types of proto.mjs. */
export declare const ElementType: Readonly<Record<string, number>>;
export interface OnnxNode {
  type: string;
  domain: string;
  opset: number;
  inputs: string[];
  outputs: string[];
  attributes: Record<string, number | string | number[] | undefined>;
  graphInputs: string[];
  graphOutputs: string[];
}
export interface ValueInfo {
  name: string;
  type?: string;
  rank?: number;
}
export declare function decodeSingleNode(bytes: Uint8Array): OnnxNode | undefined;
export declare function encodeSingleNode(node: {
  type: string;
  opset: number;
  attributes?: Record<string, number | string>;
  inputs: ValueInfo[];
  outputs: ValueInfo[];
}): Uint8Array;
export interface OnnxTensor<Data = Float32Array> {
  name: string;
  type: string;
  shape: number[];
  data: Data;
}
// The element type of a file is known to whoever reads it.
export declare function decodeTensor<Data = Float32Array>(bytes: Uint8Array): OnnxTensor<Data>;
export declare function encodeTensor(tensor: OnnxTensor<Float32Array | Uint16Array | Uint8Array | readonly number[]>): Uint8Array;
