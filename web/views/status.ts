/** The line that says what is going on, and what failed. */
const line = document.querySelector("#status") as HTMLElement;
const text = document.querySelector("#status-text") as HTMLElement;
const bar = document.querySelector("#progress") as HTMLProgressElement;
const retry = document.querySelector("#retry") as HTMLButtonElement;

export function showProgress(sentence: string, share: number): void {
  setStatus("loading", `${sentence} Until then this is a recorded example.`);
  bar.hidden = false;
  // Without a value the bar moves by itself: nothing is known yet.
  if (share > 0) bar.value = share;
  else bar.removeAttribute("value");
}

export function showReady(sentence: string): void {
  setStatus("ready", sentence);
}

export function showFailure(sentence: string, tryAgain: () => void): void {
  setStatus("failed", `${sentence} What you see is the recorded example.`);
  retry.hidden = false;
  retry.onclick = tryAgain;
}

function setStatus(state: "loading" | "ready" | "failed", sentence: string): void {
  line.dataset["state"] = state;
  text.textContent = sentence;
  bar.hidden = true;
  retry.hidden = true;
}
