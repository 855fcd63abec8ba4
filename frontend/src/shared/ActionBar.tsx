import { type ReactNode, useEffect, useRef } from "react";
import { Failure } from "./Feedback";

interface Properties {
  /** What is known before the button is pressed: what it costs, what is missing. */
  says?: ReactNode;
  /** Why it did not work after it was pressed. */
  error?: Error | null;
  /** The result, if it stays on the page. */
  outcome?: ReactNode;
  /** The buttons. */
  children: ReactNode;
}

/**
 * The end of a page's form, always at the lower edge of the window. A button that moved when something above it loaded
 * would lose the click that is just being made.
 */
export function ActionBar({ says, error, outcome, children }: Properties) {
  const shown = useRef<HTMLDivElement>(null);
  const ended = !!outcome;
  useEffect(() => {
    if (error || ended) shown.current?.scrollIntoView({ block: "nearest" });
  }, [error, ended]);
  return (
    <>
      {(error || outcome) && (
        <div ref={shown} className="action-outcome">
          {error ? <Failure error={error} /> : outcome}
        </div>
      )}
      <div className="action-bar">
        <div className="action-says">{says}</div>
        <div className="action-buttons">{children}</div>
      </div>
    </>
  );
}

/** The same at the end of a dialog, which grows downwards: later content is below the button. */
export function ActionRow({ says, error, children }: Omit<Properties, "outcome">) {
  return (
    <>
      <div className="action-row">
        <div className="action-says">{says}</div>
        <div className="action-buttons">{children}</div>
      </div>
      {error && <Failure error={error} />}
    </>
  );
}
