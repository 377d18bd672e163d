/** What can be done with a stored call: go to its neighbours, copy it as a command, send it again. */
import type { CallNeighbours, Replay as ReplayResult } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../../components/button.tsx";
import { CodeBlock } from "../../../components/code-block.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { copyText } from "../../../components/copy-button.tsx";
import { Field } from "../../../components/field.tsx";
import { prettyJson } from "../../../format/json.ts";
import { read, readRaw, request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths, useHasPermission, useScope } from "../../../session/session.ts";

interface CallWorkProps {
  readonly gatewayId: string;
  /** Path of the call in the management API. */
  readonly path: string;
}

export function NeighbourLinks({ gatewayId, path }: CallWorkProps) {
  const { page } = useAccountPaths();
  const neighbours = useResource(`${path}/neighbours`, (signal) =>
    read<CallNeighbours>(`${path}/neighbours`, signal),
  );
  const link = (id: string | null | undefined, title: string) =>
    id == null ? (
      <span className="button" aria-disabled="true">
        {title}
      </span>
    ) : (
      <Link className="button" to={page("gateways", gatewayId, "logs", id)}>
        {title}
      </Link>
    );
  return (
    <nav className="row" aria-label="Neighbouring calls">
      {link(neighbours.value?.older, "← Older")}
      {link(neighbours.value?.newer, "Newer →")}
    </nav>
  );
}

/** Copies the call as a curl command. The command is read first, so a slow server delays the copy. */
export function CopyAsCurl({ path }: Pick<CallWorkProps, "path">) {
  const [isCopied, setCopied] = useState(false);
  const copy = useAction(async () => {
    const response = await readRaw(`${path}/curl`, new AbortController().signal);
    if (!(await copyText(await response.text()))) throw new Error("The browser did not allow the copy.");
    setCopied(true);
  });
  return (
    <>
      <Button isBusy={copy.isBusy} onClick={() => void copy.run()}>
        {isCopied ? "Copied" : copy.error === null ? "Copy as curl" : "Copy failed"}
      </Button>
      <span className="visually-hidden" role="status">
        {isCopied ? "The command is on the clipboard" : (copy.error?.message ?? "")}
      </span>
    </>
  );
}

/** The playground reads the request of the call by its id. */
export function OpenInPlayground({ gatewayId, path }: CallWorkProps) {
  const { page } = useAccountPaths();
  const id = path.split("/").at(-1) ?? "";
  return (
    <Link className="button" to={`${page("gateways", gatewayId, "playground")}?call=${id}`}>
      Open in playground
    </Link>
  );
}

export function CallReplay({ gatewayId, path }: CallWorkProps) {
  const { page } = useAccountPaths();
  const { session } = useScope();
  const canRun = useHasPermission("gateway.run");
  const [model, setModel] = useState("");
  const [result, setResult] = useState<ReplayResult | null>(null);
  const replay = useAction(async () => {
    setResult(null);
    const body = model.trim() === "" ? {} : { model: model.trim() };
    setResult((await request<ReplayResult>(`${path}/replay`, { method: "POST", body })).result);
  });
  // A session of a token has no token that the gateway could meter.
  if (!canRun || !session.is_root) return null;
  return (
    <section className="panel" aria-labelledby="replay-title">
      <h2 id="replay-title">Replay</h2>
      <p className="muted">The request is sent again. It has its own cost and its own log.</p>
      <div className="filters">
        <Field label="Model">
          <input
            value={model}
            placeholder="the same, or provider/model"
            onChange={({ target }) => setModel(target.value)}
          />
        </Field>
        <Button kind="primary" isBusy={replay.isBusy} onClick={() => void replay.run()}>
          Send
        </Button>
      </div>
      {replay.error !== null && <ErrorNotice error={replay.error} />}
      {result !== null && (
        <div className="stack" role="status">
          <p>
            Status {result.status}.{" "}
            {result.log_id !== null && (
              <Link to={page("gateways", gatewayId, "logs", result.log_id)}>Open the new call</Link>
            )}
          </p>
          <CodeBlock label="Answer of the replay" code={prettyJson(result.answer)} isWrapped />
        </div>
      )}
    </section>
  );
}
