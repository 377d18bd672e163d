/** One instance per collection of documents. It finds passages with SQLite's full-text search, and a model answers from them. */
import { createHash } from "node:crypto";
import { Agent, type AgentEnvironment, callable, type StreamingResponse } from "signalbox";
import { askModel } from "./ask-model.ts";

export interface Source {
  /** File and heading. */
  readonly file: string;
  readonly heading: string;
  readonly text: string;
}

export interface HandbookState {
  readonly documents: number;
  readonly passages: number;
}

/** Passages that the model gets. */
const SHOWN = 4;

export class Handbook extends Agent<AgentEnvironment, HandbookState> {
  override initialState: HandbookState = { documents: 0, passages: 0 };

  override onStart() {
    // `porter` finds "booking" by "book". Words in a heading count four times as much, see `find`.
    this
      .sql`CREATE VIRTUAL TABLE IF NOT EXISTS passage USING fts5(heading, text, file UNINDEXED, tokenize = 'porter unicode61')`;
    this.sql`CREATE TABLE IF NOT EXISTS document (file TEXT PRIMARY KEY, hash TEXT NOT NULL) STRICT`;
  }

  /** Stores a Markdown file; one that has not changed costs nothing. All of it is one transaction: no question sees half a document. */
  @callable()
  put(file: string, markdown: string): void {
    const hash = createHash("sha256").update(markdown).digest("hex");
    const [known] = this.sql<{ hash: string }>`SELECT hash FROM document WHERE file = ${file}`;
    if (known?.hash === hash) return;
    this.sql`DELETE FROM passage WHERE file = ${file}`;
    for (const { heading, text } of passagesOf(markdown))
      this.sql`INSERT INTO passage (heading, text, file) VALUES (${heading}, ${text}, ${file})`;
    this
      .sql`INSERT INTO document (file, hash) VALUES (${file}, ${hash}) ON CONFLICT (file) DO UPDATE SET hash = excluded.hash`;
    const [counts] = this.sql<{ documents: number; passages: number }>`
      SELECT (SELECT count(*) FROM document) AS documents, (SELECT count(*) FROM passage) AS passages`;
    this.setState({ ...this.state, ...counts });
  }

  /** The passages that fit best, best first. */
  @callable()
  find(question: string): Source[] {
    const words = question.match(/[\p{L}\p{N}]{3,}/gu) ?? [];
    if (words.length === 0) return [];
    // Quoted, so that a word of the question is never an operator of the search.
    const search = words.map((word) => `"${word}"`).join(" OR ");
    return this.sql<Source & Record<string, string>>`
      SELECT file, heading, text FROM passage WHERE passage MATCH ${search} ORDER BY bm25(passage, 4.0, 1.0) LIMIT ${SHOWN}`;
  }

  /** Sends the sources first, then the answer piece by piece. Questions do not wait for each other: they write nothing. */
  @callable({ streaming: true, concurrent: true })
  async ask(stream: StreamingResponse, question: string): Promise<void> {
    const sources = this.find(question);
    stream.send({ sources });
    if (sources.length === 0) {
      stream.send({ text: "The handbook says nothing about that." });
      return;
    }
    const prompt = [
      "Answer from these passages only, in two sentences. Put the number of the passage behind each fact, such as [1].",
      ...sources.map(({ heading, text }, index) => `[${index + 1}] ${heading}: ${text}`),
      `Question: ${question}`,
    ].join("\n\n");
    for await (const text of askModel(this.env, prompt, stream.signal)) stream.send({ text });
  }
}

/** A passage for each heading, with the headings above it. */
function passagesOf(markdown: string): { heading: string; text: string }[] {
  const headings: string[] = [];
  return markdown.split(/^(?=#{1,6} )/m).flatMap((section) => {
    const [, marks = "#", title = "", text = ""] = /^(#*)\s*(.*)\n([^]*)$/.exec(`${section}\n`) ?? [];
    headings.splice(Math.max(marks.length - 1, 0), headings.length, title.trim());
    return text.trim() === "" ? [] : [{ heading: headings.filter(Boolean).join(" › "), text: text.trim() }];
  });
}
