/** After a response that is not a stream, such as that of a proxy while the service restarts, the browser does not reconnect by itself. */
const REOPEN_MS = 3000;

/**
 * Opens an event stream, and opens it again until the returned function is called. `listen` gets each source, `path` is called for each.
 */
export function openEventStream(path: () => string, listen: (source: EventSource) => void): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const open = () => {
    const opened = new EventSource(path());
    source = opened;
    opened.addEventListener("error", () => {
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS);
    });
    listen(opened);
  };
  open();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}
