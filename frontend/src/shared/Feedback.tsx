import {
  Alert,
  Anchor,
  Box,
  Button,
  Center,
  Code,
  Group,
  List,
  Skeleton,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { type FaultPlace, Problem } from "../api/client";
import { Page } from "./Page";
import { WithCode } from "./text/WithCode";

/** What went wrong, where, and the next step. `wayTo` gives what leads to a place, where something does. */
export function Failure({
  error,
  retry,
  wayTo,
}: {
  error: Error;
  retry?: () => void;
  wayTo?: (place: FaultPlace) => (() => void) | null;
}) {
  const problem = error instanceof Problem ? error : null;
  // What is not there will not be there on a second try either.
  const again = problem?.status === 404 ? undefined : retry;
  return (
    <Alert
      color="red"
      icon={<IconAlertTriangle />}
      title={problem?.title ?? "Something went wrong in this page"}
      role="alert"
    >
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          <WithCode text={error.message} />
        </Text>
        {problem?.hint && (
          <Text size="sm">
            <WithCode text={problem.hint} />
          </Text>
        )}
        {!!problem?.places.length && (
          <List size="sm">
            {problem.places.slice(0, 20).map((place, at) => (
              <List.Item key={at}>
                <Location text={place.location} go={wayTo?.(place)} /> <WithCode text={place.message} />
              </List.Item>
            ))}
          </List>
        )}
        <Group gap="sm">
          {again && (
            <Button size="xs" variant="default" onClick={again}>
              Try again
            </Button>
          )}
          {problem && problem.code !== "unknown" && (
            <Text size="xs" c="dimmed">
              {problem.code}
            </Text>
          )}
        </Group>
      </Stack>
    </Alert>
  );
}

function Location({ text, go }: { text: string; go?: (() => void) | null }) {
  const code = <Code>{text}</Code>;
  return go ? (
    <Anchor component="button" type="button" underline="always" onClick={go}>
      {code}
    </Anchor>
  ) : (
    code
  );
}

/** Nothing is here yet, and what brings something here. */
export function Empty({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <Center py={48}>
      <Stack align="center" gap="xs" maw={460}>
        <Title order={2} size="h4">
          {title}
        </Title>
        {children && (
          <Text c="dimmed" ta="center" size="sm" component="div" style={{ textWrap: "balance" }}>
            {children}
          </Text>
        )}
        {action && <Box mt="xs">{action}</Box>}
      </Stack>
    </Center>
  );
}

export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <Stack gap="sm" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => (
        <Skeleton key={at} h={at ? 28 : 36} w={at ? "100%" : "40%"} />
      ))}
    </Stack>
  );
}

interface Asked<T> {
  data: T | undefined;
  error: Error | null;
  refetch: () => unknown;
}

/** One of the four states of a request: failing, loading, or there. Old data stays while new data fails to come. */
export function Loaded<T>({
  query,
  rows,
  children,
}: {
  query: Asked<T>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) {
    // Every page shows at the top that the server is away; the known data are worth more than repeating it.
    const away = query.error instanceof Problem && query.error.code === "unreachable";
    return (
      <>
        {query.error && !away && <Failure error={query.error} retry={() => void query.refetch()} />}
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return <Loading rows={rows} />;
}

/** The same for the thing that a whole page shows: a page that fails still has its heading and its title. */
export function LoadedPage<T>({
  title,
  others,
  ...rest
}: {
  /** What the page is of, until it is known by name. */
  title: string;
  /** The way to what there is, for someone who came for what is not. */
  others?: ReactNode;
  query: Asked<T>;
  children: (data: T) => ReactNode;
}) {
  if (rest.query.data !== undefined) return <Loaded {...rest} />;
  const missing = rest.query.error instanceof Problem && rest.query.error.status === 404;
  return (
    <Page title={missing ? `${title} not found` : title}>
      <Loaded {...rest} />
      {missing && others}
    </Page>
  );
}
