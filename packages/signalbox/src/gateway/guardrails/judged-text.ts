/** What a judge reads: the texts of a document as a person would read them, without the words of the protocol. */
import { marksOf, pathOf, readJsonTexts } from "../../engines/text-scan/index.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import { isProtocolWord, roleOf, textOf, typeOf } from "./json-document.ts";
import type { GuardrailPlace } from "./rule-set.ts";

/** One text of a document, and which text of a stream it continues. */
interface ReadText {
  readonly name: string;
  readonly text: string;
}

/** Collects texts: those of one name continue each other, others begin a new line. */
export class JudgedText {
  #text = "";
  #last = "";
  readonly #place: GuardrailPlace;

  constructor(place: GuardrailPlace) {
    this.#place = place;
  }

  get text(): string {
    return this.#text;
  }

  /** A document or, if it is none, a text. */
  add(source: string): void {
    for (const { name, text } of textsIn(source, this.#place)) {
      if (name !== this.#last && this.#text !== "") this.#text += "\n";
      this.#text += text;
      this.#last = name;
    }
  }

  /** Another text begins; the next one may still continue the last of this one. */
  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }
}

function textsIn(source: string, place: GuardrailPlace): ReadText[] {
  const texts = /^\s*[{[]/.test(source) ? readJsonTexts(source) : null;
  if (texts === null) return source.trim() === "" ? [] : [{ name: "plain", text: source }];
  const event = typeOf(texts);
  return texts.flatMap((at): ReadText[] => {
    if (at.kind !== "value") return [];
    const role = roleOf(at, place, place === "response" ? event : "");
    const name = `${event} ${marksOf(at.level)} ${pathOf(at)}`;
    // A person reads a text that only begins like a data URL as it is.
    if (role.kind === "decoded")
      return [{ name, text: /\s/.test(role.head.trim()) ? `${role.head}\n${role.text}` : role.text }];
    const isRead =
      role.kind === "text" ||
      (role.kind === "aside" && (!isProtocolWord(at.member, at.text) || /\s/.test(at.text)));
    return isRead ? [{ name, text: at.text }] : [];
  });
}

/** The texts of a request. Bytes that are none are left out: rules on them are those on what cannot be read. */
export function textOfRequest(body: RequestBody, contentType: string): string {
  if (body.kind !== "whole") return "";
  const read = new JudgedText("prompt");
  const boundary = /^multipart\/[\w-]+\s*;(?:.*;)?\s*boundary="?([^";]{1,70})"?/i.exec(contentType)?.[1];
  const parts = boundary === undefined ? [body.bytes] : partsOf(body.bytes, Buffer.from(`--${boundary}`));
  for (const part of parts) for (const document of documentsOf(textOf(part) ?? "")) read.add(document);
  return read.text;
}

/** The texts of a whole answer. */
export function textOfAnswer(bytes: Buffer): string {
  const read = new JudgedText("response");
  for (const document of documentsOf(textOf(bytes) ?? "")) read.add(document);
  return read.text;
}

/** The text itself, or its lines if each is a document. */
function documentsOf(text: string): string[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.length > 1 && lines.every((line) => /^\s*\{.*\}\s*$/.test(line)) ? lines : [text];
}

/** Contents of the parts of a form. */
function partsOf(bytes: Buffer, delimiter: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = bytes.indexOf(delimiter); at !== -1;) {
    const next = bytes.indexOf(delimiter, at + delimiter.length);
    const head = bytes.indexOf("\r\n\r\n", at);
    const end = next === -1 ? bytes.length : next;
    if (head !== -1 && head < end) parts.push(bytes.subarray(head + 4, end));
    at = next;
  }
  return parts;
}
