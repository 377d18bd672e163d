import { useId } from "react";
import { Button } from "../components/button.tsx";
import { Field } from "../components/field.tsx";
import { useAction } from "../http/use-action.ts";
import { navigate } from "../routing/location.ts";
import { logOut, useScope } from "../session/session.ts";
import { saveTheme, type Theme, useTheme } from "../theme.ts";

/** The account, whose token it is, theme and logout: one button at the end of the navigation, with a menu that the browser closes. */
export function SessionMenu({ onLogout }: { readonly onLogout: () => void }) {
  const { session, accountId } = useScope();
  const theme = useTheme();
  const menuId = useId();
  const name = session.accounts.find(({ id }) => id === accountId)?.name ?? accountId;
  const credential = session.is_root ? "Root token" : `Token “${session.token_name ?? ""}”`;
  const logout = useAction(async () => {
    await logOut();
    onLogout();
  });
  return (
    <div className="session">
      <button type="button" className="session-button" popoverTarget={menuId}>
        <span className="visually-hidden">Account and theme: </span>
        <span className="session-initial" aria-hidden="true">
          {name.slice(0, 1).toUpperCase()}
        </span>
        <span className="session-names">
          <span className="session-account">{name}</span>
          <span className="muted session-token">{credential}</span>
        </span>
        <svg viewBox="0 0 20 20" aria-hidden="true" className="nav-icon">
          <path d="m6 8 4-4 4 4M6 12l4 4 4-4" />
        </svg>
      </button>
      <div id={menuId} popover="auto" className="session-menu" role="group" aria-label="Account and theme">
        <Field label="Account">
          <select
            value={accountId}
            onChange={(event) => navigate(`/accounts/${encodeURIComponent(event.target.value)}`)}
          >
            {session.accounts.map(({ id, name: title }) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
            {!session.accounts.some(({ id }) => id === accountId) && (
              <option value={accountId}>{accountId}</option>
            )}
          </select>
        </Field>
        <Field label="Theme">
          <select value={theme} onChange={(event) => saveTheme(event.target.value as Theme)}>
            <option value="system">System</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </Field>
        <p className="muted small session-credential">
          {credential} · v{session.version}
        </p>
        <Button onClick={() => void logout.run()} isBusy={logout.isBusy}>
          Log out
        </Button>
      </div>
    </div>
  );
}
