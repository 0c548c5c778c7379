/** The command line of `npm run bench -- ...`. */
export const usage = `npm run bench -- [flags]
  --quick           few workloads, short times: does it still run, is it still right
  --browser         in Chromium instead of Node
  --peers           beside onnxruntime-web, LiteRT.js, TensorFlow.js and ruvector (installs them, into a folder of their own)
  --only=W1,W2      only these workloads, or groups of them (prefill, decode, layer, small, scaling, hidden, headDim)
  --readme          writes the table and the chart of README.md from the results on file, after those of this run are added
  --no-native       without the native build of the same source`;

const known = new Set(["quick", "browser", "peers", "readme", "no-native"]);

export function readOptions(words) {
  const options = { quick: false, browser: false, peers: false, readme: false, native: true, only: undefined };
  for (const word of words) {
    const [, name, value] = /^--([\w-]+)(?:=(.+))?$/.exec(word) ?? [];
    if (name === "only" && value) options.only = value.split(",");
    else if (name === "no-native" && !value) options.native = false;
    else if (known.has(name) && !value) options[name] = true;
    else return undefined;
  }
  return options;
}
