export function Logo() {
  return (
    <span className="logo">
      <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
        <rect x="9" y="2" width="14" height="22" rx="7" className="logo-body" />
        <circle cx="16" cy="9" r="3.4" className="logo-off" />
        <circle cx="16" cy="17" r="3.4" className="logo-on" />
        <path d="M16 24v6M10 30h12" className="logo-mast" />
      </svg>
      Signalbox
    </span>
  );
}
