import { useEffect, useState } from "react";
import { Button } from "./button.tsx";

/** Copies a text to the clipboard and announces the result to screen readers. */
export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const [outcome, setOutcome] = useState<"copied" | "failed" | null>(null);
  useEffect(() => {
    if (outcome === null) return undefined;
    const timer = setTimeout(() => setOutcome(null), 2000);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => setOutcome((await copyText(text)) ? "copied" : "failed");
  return (
    <span className="copy">
      <Button size="small" onClick={() => void copy()}>
        {outcome === "copied" ? "Copied" : outcome === "failed" ? "Copy failed" : label}
      </Button>
      <span className="visually-hidden" role="status">
        {outcome === "copied"
          ? "Copied to the clipboard"
          : outcome === "failed"
            ? "Copying failed. Select the text and copy it manually."
            : ""}
      </span>
    </span>
  );
}

/** The Clipboard API exists in secure contexts only; on plain HTTP the function falls back to `execCommand`. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}
