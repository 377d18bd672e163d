import { usePaused } from "../../http/use-paused.ts";
import { useResource } from "../../http/use-resource.ts";

/** A token is typed or pasted; the list is read when it stays the same for a moment. */
const PAUSE_MS = 400;

/** The models that a caller with this token can call through the gateway. Empty if the list cannot be read. */
export function useModels(url: string, token: string, needsToken: boolean): readonly string[] {
  const sent = usePaused(token, PAUSE_MS);
  const isReachable = new URL(url).origin === location.origin && (sent !== "" || !needsToken);
  const models = useResource(isReachable ? `${url} ${sent}` : null, async (signal) => {
    const headers = sent === "" ? {} : { "gw-aig-authorization": `Bearer ${sent}` };
    const response = await fetch(`${url}/models`, { headers, signal, credentials: "omit" });
    if (!response.ok) return [];
    const { data } = (await response.json()) as { data: { id: string }[] };
    return data.map(({ id }) => id);
  });
  return models.value ?? [];
}
