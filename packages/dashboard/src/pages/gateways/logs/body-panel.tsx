import { useState } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Tabs } from "../../../components/tabs.tsx";
import { prettyJson } from "../../../format/json.ts";
import { bytes } from "../../../format/number.ts";
import { ApiError, readRaw } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { assembleStream } from "./assemble-stream.ts";
import { ResponseView, RequestView } from "./message-views.tsx";

/** In characters: browsers are slow with megabytes of text in one element. The "raw body" link opens the whole body. */
const MAX_SHOWN = 200_000;

interface StoredBody {
  readonly text: string;
  /** False if the service stored only the beginning of the body. */
  readonly isComplete: boolean;
}

interface BodyPanelProps {
  readonly title: "Request" | "Response";
  readonly path: string;
  readonly contentType: string;
}

export function BodyPanel({ title, path, contentType }: BodyPanelProps) {
  const body = useResource(path, (signal) => readBody(path, signal));
  return (
    <section className="panel" aria-labelledby={`body-${title}`}>
      <h2 id={`body-${title}`}>{title}</h2>
      <ResourceView of={body}>
        {(value) =>
          value === null ? (
            <p className="muted">No body was stored for this call.</p>
          ) : (
            <BodyView title={title} body={value} contentType={contentType} path={path} />
          )
        }
      </ResourceView>
    </section>
  );
}

/** Null if no body is stored. */
export async function readBody(path: string, signal: AbortSignal): Promise<StoredBody | null> {
  const response = await readRaw(path, signal).catch((error: unknown) => {
    if (error instanceof ApiError && error.status !== 0) return null;
    throw error;
  });
  if (response === null) return null;
  return {
    text: await response.text(),
    isComplete: response.headers.get("gw-aig-body-complete") !== "false",
  };
}

function BodyView({ title, body, contentType, path }: BodyPanelProps & { readonly body: StoredBody }) {
  const [view, setView] = useState<"formatted" | "raw">("formatted");
  const raw = prettyJson(body.text);
  const formatted =
    title === "Request" ? (
      <RequestView json={body.text} />
    ) : (
      <ResponseView stream={assembleStream(body.text)} json={body.text} />
    );
  return (
    <>
      <Tabs
        label={`${title} body`}
        tabs={[
          { name: "formatted", title: "Formatted" },
          { name: "raw", title: "Raw" },
        ]}
        current={view}
        onChange={setView}
      >
        {view === "formatted" ? (
          formatted
        ) : (
          <CodeBlock code={raw.slice(0, MAX_SHOWN)} label={`Raw ${title.toLowerCase()} body`} />
        )}
      </Tabs>
      <p className="muted small">
        {contentType === "" ? "No content type" : contentType} · {bytes(body.text.length)}
        {!body.isComplete && " · truncated"} ·{" "}
        <a href={path} target="_blank" rel="noreferrer">
          Open raw body
        </a>
      </p>
    </>
  );
}
