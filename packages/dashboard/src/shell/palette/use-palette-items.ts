/** What the palette offers: pages, actions, and gateways, agents, sources and instances by name, as far as the session may read them. */
import { useMemo } from "react";
import { read, withQuery } from "../../http/api.ts";
import { usePaused } from "../../http/use-paused.ts";
import { useResource } from "../../http/use-resource.ts";
import { type AccountScope, logOut, useAccountPaths, useScope } from "../../session/session.ts";
import { toggleTheme } from "../../theme.ts";
import { DESTINATIONS, isAllowed } from "../destinations.ts";
import type { PaletteItem } from "./match-items.ts";

const PAUSE_MS = 200;
const MIN_SEARCH = 2;
/** Classes whose instances are searched, and instances of each. */
const MAX_CLASSES = 8;
const MAX_INSTANCES = 5;

type Paths = ReturnType<typeof useAccountPaths>;

export function usePaletteItems(
  text: string,
  onLogout: () => void,
  onKeys: () => void,
): readonly PaletteItem[] {
  const scope = useScope();
  const paths = useAccountPaths();
  const search = usePaused(text.trim(), PAUSE_MS);
  const named = useResource(`palette ${scope.accountId}`, (signal) => readNamed(scope, paths, signal));
  const agents = named.value?.agents ?? [];
  const instances = useResource(
    search.length >= MIN_SEARCH && agents.length > 0 ? `instances ${search} ${agents.join(" ")}` : null,
    (signal) => readInstances(agents, search, paths, signal),
  );
  return useMemo(
    () => [
      ...pages(scope, paths),
      ...actions(scope, paths, onLogout, onKeys),
      ...(named.value?.items ?? []),
      ...(search.length >= MIN_SEARCH ? (instances.value ?? []) : []),
    ],
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the paths depend on the account of the scope only
    [scope, named.value, instances.value, search, onLogout, onKeys],
  );
}

function pages({ session }: AccountScope, { page }: Paths): PaletteItem[] {
  return DESTINATIONS.filter((destination) => isAllowed(destination, session)).map((destination) => ({
    id: `page ${destination.title}`,
    title: destination.title,
    kind: "Page",
    words: destination.words ?? "",
    to: page(...destination.page),
  }));
}

function actions(
  { session }: AccountScope,
  { page }: Paths,
  onLogout: () => void,
  onKeys: () => void,
): PaletteItem[] {
  const may = (permission: (typeof session.permissions)[number]) => session.permissions.includes(permission);
  const action = (title: string, rest: Omit<PaletteItem, "id" | "title" | "kind">): PaletteItem => ({
    id: `action ${title}`,
    title,
    kind: "Action",
    ...rest,
  });
  return [
    ...(may("tokens.edit")
      ? [action("Create token", { to: `${page("tokens")}?create=1`, words: "new api key" })]
      : []),
    ...(may("gateway.edit") && session.gateway_id === null
      ? [action("Create gateway", { to: `${page("gateways")}?create=1`, words: "new" })]
      : []),
    action("Toggle theme", { run: toggleTheme, words: "dark light mode" }),
    action("Keyboard shortcuts", { run: onKeys, words: "keys help" }),
    action("Log out", { run: () => void logOut().then(onLogout), words: "sign out" }),
  ];
}

interface Named {
  readonly items: readonly PaletteItem[];
  readonly agents: readonly string[];
}

async function readNamed(
  { session }: AccountScope,
  { api, page }: Paths,
  signal: AbortSignal,
): Promise<Named> {
  const list = async <T>(isReadable: boolean, path: string): Promise<T[]> =>
    isReadable ? read<T[]>(path, signal).catch(() => []) : [];
  const may = (permission: (typeof session.permissions)[number]) => session.permissions.includes(permission);
  const [gateways, agents, sources] = await Promise.all([
    list<{ id: string }>(may("gateway.read"), withQuery(api("ai-gateway", "gateways"), { per_page: 100 })),
    list<{ id: string; name: string }>(may("agents.read"), api("agents")),
    list<{ name: string }>(may("webhooks.read"), api("webhooks", "sources")),
  ]);
  const item = (kind: string, title: string, to: string, words = ""): PaletteItem => ({
    id: `${kind} ${title}`,
    title,
    kind,
    to,
    words,
  });
  return {
    agents: agents.map(({ name }) => name),
    items: [
      ...gateways.flatMap(({ id }) => [
        item("Gateway", id, page("gateways", id)),
        item("Playground", id, page("gateways", id, "playground"), "try model"),
        item("Gateway settings", id, page("gateways", id, "settings")),
      ]),
      ...agents.map(({ name }) => item("Agent", name, page("agents", name))),
      ...sources.map(({ name }) => item("Webhook source", name, page("webhooks", "sources", name))),
    ],
  };
}

async function readInstances(
  agents: readonly string[],
  search: string,
  { api, page }: Paths,
  signal: AbortSignal,
): Promise<PaletteItem[]> {
  const found = await Promise.all(
    agents.slice(0, MAX_CLASSES).map(async (agent) => {
      const path = withQuery(api("agents", agent, "instances"), { search });
      const instances = await read<{ name: string }[]>(path, signal).catch(() => []);
      return instances.slice(0, MAX_INSTANCES).map(({ name }) => ({
        id: `instance ${agent} ${name}`,
        title: name,
        kind: `Instance of ${agent}`,
        to: page("agents", agent, name),
        // The server decided that it matches.
        words: search.toLowerCase(),
      }));
    }),
  );
  return found.flat();
}
