/** Light or dark: as the system has it, or as chosen here. Canvases do not follow by themselves, hence `changed`. */
const kNext = { auto: "light", light: "dark", dark: "auto" } as const;
type Theme = keyof typeof kNext;

export function startTheme(button: HTMLButtonElement, changed: () => void): void {
  let theme: Theme = remembered();
  const apply = () => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = kNext[theme];
    remember(theme);
    apply();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply();
}

function remembered(): Theme {
  try {
    const theme = localStorage.getItem("theme") ?? "auto";
    return theme in kNext ? (theme as Theme) : "auto";
  } catch {
    return "auto"; // storage can be switched off
  }
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Then it holds until the page is left.
  }
}
