export { accountRoutes } from "./account-routes.ts";
export { tokenRoutes } from "./token-routes.ts";
