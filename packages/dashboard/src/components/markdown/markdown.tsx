import { lazy, Suspense } from "react";

const MarkdownBlocks = lazy(async () => ({
  default: (await import("./markdown-blocks.tsx")).MarkdownBlocks,
}));

/** Markdown as elements. The parser is loaded with the first text; until then, the text is shown as it is. */
export function Markdown({ text }: { readonly text: string }) {
  return (
    <Suspense fallback={<p className="plain-text">{text}</p>}>
      <MarkdownBlocks text={text} />
    </Suspense>
  );
}
