/**
 * Markdown as React elements.
 *
 * Invariants:
 * 1. No HTML of the text becomes an element: `marked` only splits the text into tokens, and HTML tokens are shown as text.
 * 2. Nothing is loaded from an address in the text; links open only with a click.
 */
import { lexer, type Token, type Tokens } from "marked";
import { Fragment, type ReactNode, useMemo } from "react";
import { CodeBlock } from "../code-block.tsx";
import { MessageImage } from "./message-image.tsx";
import { safeLink } from "./safe-address.ts";

/** Longer texts are shown without formatting. The parser's time grows with the square of some texts: 50,000 opening brackets take half a second. */
const MAX_LENGTH = 50_000;
/** Of lists and quotes in each other; deeper ones are shown as text. */
const MAX_DEPTH = 20;

export function MarkdownBlocks({ text }: { readonly text: string }) {
  const tokens = useMemo(() => parse(text), [text]);
  if (tokens === null) return <p className="plain-text">{text}</p>;
  return <div className="markdown">{blocks(tokens, 0)}</div>;
}

function parse(text: string): Token[] | null {
  if (text.length > MAX_LENGTH) return null;
  try {
    return lexer(text, { gfm: true, breaks: true });
  } catch {
    return null;
  }
}

function blocks(tokens: readonly Token[], depth: number): ReactNode {
  if (depth > MAX_DEPTH) return <p className="plain-text">{tokens.map(({ raw }) => raw).join("")}</p>;
  return tokens.map((token, i) => <Fragment key={i}>{block(token as Tokens.Generic, depth)}</Fragment>);
}

function block(token: Tokens.Generic, depth: number): ReactNode {
  const inner = () => inline(token.tokens ?? [], depth);
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // The page has its own headings; those of a message are text with weight.
      return (
        <p className={`markdown-heading markdown-heading-${Math.min(3, Number(token["depth"]))}`}>
          {inner()}
        </p>
      );
    case "paragraph":
      return <p>{inner()}</p>;
    case "code":
      return <CodeBlock code={String(token["text"])} label="Code" caption={String(token["lang"] ?? "")} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [], depth + 1)}</blockquote>;
    case "hr":
      return <hr />;
    case "list":
      return list(token as Tokens.List, depth);
    case "table":
      return table(token as Tokens.Table, depth);
    case "text":
      return token.tokens === undefined ? <span className="plain-text">{textOf(token)}</span> : inner();
    default:
      return <p className="plain-text">{token.raw}</p>;
  }
}

function list({ ordered, start, items }: Tokens.List, depth: number): ReactNode {
  const children = items.map((item, i) => (
    <li key={i} className={item.task ? "markdown-task" : undefined}>
      {item.task && (
        <input type="checkbox" checked={item.checked === true} readOnly disabled aria-label="Task" />
      )}
      {blocks(
        item.tokens.filter(({ type }) => type !== "checkbox"),
        depth + 1,
      )}
    </li>
  ));
  return ordered ? <ol start={start === "" ? 1 : start}>{children}</ol> : <ul>{children}</ul>;
}

function table({ header, rows }: Tokens.Table, depth: number): ReactNode {
  const cells = (row: readonly Tokens.TableCell[], Cell: "th" | "td") =>
    row.map((cell, i) => <Cell key={i}>{inline(cell.tokens, depth)}</Cell>);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{cells(header, "th")}</tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: readonly Token[], depth: number): ReactNode {
  return tokens.map((token, i) => <Fragment key={i}>{inlineOne(token as Tokens.Generic, depth)}</Fragment>);
}

function inlineOne(token: Tokens.Generic, depth: number): ReactNode {
  const inner = () => inline(token.tokens ?? [], depth + 1);
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case "strong":
      return <strong>{inner()}</strong>;
    case "em":
      return <em>{inner()}</em>;
    case "del":
      return <del>{inner()}</del>;
    case "codespan":
      return <code>{String(token["text"])}</code>;
    case "br":
      return <br />;
    case "escape":
      return String(token["text"]);
    case "link": {
      const address = safeLink(String(token["href"]));
      if (address === null) return token.raw;
      return (
        <a href={address} target="_blank" rel="noreferrer noopener">
          {inner()}
        </a>
      );
    }
    case "image":
      return <MessageImage address={String(token["href"])} text={String(token["text"] ?? "")} />;
    case "text":
      return token.tokens === undefined ? textOf(token) : inner();
    default:
      return token.raw;
  }
}

/** Character references stay as they are: that is the text the model sent. */
function textOf(token: Tokens.Generic): string {
  return String(token["text"] ?? token.raw);
}
