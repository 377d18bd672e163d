import { lazy, Suspense } from "react";
import { loadPart } from "../../http/load-part.ts";

interface MarkdownProps {
  readonly text: string;
}

// Not worth a reload, which would clear the form beside it.
const MarkdownBlocks = lazy(async () => ({
  default: await loadPart(async () => (await import("./markdown-blocks.tsx")).MarkdownBlocks).catch(
    () => PlainText,
  ),
}));

/** Markdown as elements. The parser is loaded with the first text; until then, the text is shown as it is. */
export function Markdown({ text }: MarkdownProps) {
  return (
    <Suspense fallback={<PlainText text={text} />}>
      <MarkdownBlocks text={text} />
    </Suspense>
  );
}

function PlainText({ text }: MarkdownProps) {
  return <p className="plain-text">{text}</p>;
}
