/** Types of half.mjs. */
export declare function halfValue(bits: number): number;
export declare function halfBits(number: number): number;
