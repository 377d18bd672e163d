export { isTaken, Routing } from "./routing.ts";
export { eventRoutes } from "./event-routes.ts";
export { exampleRoutes } from "./example-routes.ts";
export { issueRoutes } from "./issue-routes.ts";
export { listenerRoutes } from "./listener-routes.ts";
export { replayRoutes } from "./replay-routes.ts";
export { routeRoutes } from "./route-routes.ts";
export type { SourceRoutes } from "./source-routes.ts";
