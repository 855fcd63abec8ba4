import {
  Alert,
  Button,
  Card,
  Center,
  Code,
  Divider,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { sessionQuery, signInMethodsQuery, startSession } from "../../api/accounts/session";
import { Failure } from "../../shared/Feedback";

export function SignIn() {
  const { back, problem } = getRouteApi("/sign-in").useSearch();
  const client = useQueryClient();
  const navigate = useNavigate();
  const oidc = useQuery(signInMethodsQuery).data?.oidc;
  const form = useForm({ initialValues: { user: "", password: "" } });
  const signIn = useMutation({
    mutationFn: startSession,
    onSuccess: async () => {
      await client.resetQueries({ queryKey: sessionQuery.queryKey });
      // Only a path of our own: an address from outside must not lead away.
      await navigate({ href: back?.startsWith("/p/") ? back : "/" });
    },
  });
  return (
    <Center mih="100vh" p="md" component="main">
      <Card withBorder w={380} p="xl">
        <Stack>
          <Title order={1} size="h3">
            Sign in to Steerboard
          </Title>
          {problem === "used_link" && (
            <Alert color="orange" title="This link was used or has expired" role="alert">
              <Text size="sm">
                A sign-in link works once, for a short time. For a new one, run{" "}
                <Code>steerboard sign-in</Code> on the server, or ask an owner of your project.
              </Text>
            </Alert>
          )}
          {problem === "oidc_failed" && (
            <Alert color="orange" title="Sign-in failed" role="alert">
              <Text size="sm">
                Try again. If it fails once more, the operator finds the reason in the server&apos;s log.
              </Text>
            </Alert>
          )}
          <form onSubmit={form.onSubmit((values) => signIn.mutate(values))}>
            <Stack gap="sm">
              <TextInput label="Name" autoComplete="username" required {...form.getInputProps("user")} />
              <PasswordInput
                label="Password"
                autoComplete="current-password"
                required
                {...form.getInputProps("password")}
              />
              <Button type="submit" loading={signIn.isPending}>
                Sign in
              </Button>
            </Stack>
          </form>
          {signIn.error && <Failure error={signIn.error} />}
          {oidc && (
            <>
              <Divider label="or" />
              <Button
                component="a"
                variant="default"
                href={`/sign-in/oidc?back=${encodeURIComponent(back ?? "")}`}
              >
                Sign in with {oidc}
              </Button>
            </>
          )}
          {problem !== "used_link" && (
            <Alert variant="light" color="gray" title="No password yet?" role="note">
              <Text size="sm">
                Open the one-time link that <Code>steerboard up</Code> printed, or get a fresh one on the
                server with <Code>steerboard sign-in</Code>. An owner of your project can make one for you
                too.
              </Text>
            </Alert>
          )}
        </Stack>
      </Card>
    </Center>
  );
}
