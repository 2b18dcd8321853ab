#!/bin/sh
# A tenant's first minute at a running service, from outside. Needs curl and jq.
#
#	PLAYGROUND_TOKEN=$(cat alice.token) PLAYGROUND_BASE_URL=https://mcp.example.org sh smoke.sh
#
# PLAYGROUND_TOKEN                    the tenant's token; it goes to curl through a pipe
# PLAYGROUND_BASE_URL                 where clients connect
# PLAYGROUND_PRIVATE_HTTP=YES         allow http:// on loopback, before the service faces the network
# PLAYGROUND_FREEBSD_JOB_SMOKE=YES    also cancel a job whose daemonised descendant ignores TERM, beside one that must live on
set -u

main()
{
	check_settings
	work=$(mktemp -d "${TMPDIR:-/tmp}/playground-smoke.XXXXXX") || exit 1
	trap 'rm -rf "$work"' EXIT
	session='' handle=''
	marker=smoke-$$-$(date +%s)
	file=/workspace/$marker
	strangers_stay_out
	a_session_begins
	the_tools_are_there
	a_command_runs
	files_stay
	[ "${PLAYGROUND_FREEBSD_JOB_SMOKE:-}" != YES ] || cancelled_is_dead
	tool exec command "rm -f $file $file.*"
	tool close_session
	echo 'smoke: all is well'
}

check_settings()
{
	[ -n "${PLAYGROUND_TOKEN:-}" ] || fail 'PLAYGROUND_TOKEN is not set; it is what playground user create has printed'
	url=${PLAYGROUND_BASE_URL:-}
	case $url in
	https://?*) ;;
	http://127.0.0.1:*|http://localhost:*|'http://[::1]:'*) [ "${PLAYGROUND_PRIVATE_HTTP:-}" = YES ] || fail "$url is not encrypted; set PLAYGROUND_PRIVATE_HTTP=YES if that is meant" ;;
	*) fail 'PLAYGROUND_BASE_URL must be https://NAME, or http:// on loopback' ;;
	esac
	case $PLAYGROUND_TOKEN in *[!A-Za-z0-9._~+/=-]*) fail 'PLAYGROUND_TOKEN is no token' ;; esac
	for program in curl jq; do
		command -v "$program" >/dev/null || fail "$program is missing; pkg install $program"
	done
}

strangers_stay_out()
{
	status=$(curl -sS -m 60 -D "$work/head" -o "$work/body" -w '%{http_code}' -H 'Content-Type: application/json' \
		-d '{"jsonrpc":"2.0","id":1,"method":"ping"}' "$url/") || fail "nothing answers at $url"
	[ "$status" = 401 ] || fail "without a token the answer is $status and not 401"
	grep -qi '^www-authenticate: bearer' "$work/head" || fail 'the 401 does not say how to log in (WWW-Authenticate: Bearer)'
	done_with 'without a token: 401, with a challenge'
}

a_session_begins()
{
	post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"smoke","version":"1"}}}'
	[ "$status" = 200 ] || fail "initialize is answered with $status"
	[ "$(jq -r .result.protocolVersion "$work/body")" = 2025-06-18 ] || fail "initialize does not speak 2025-06-18"
	session=$(tr -d '\r' <"$work/head" | sed -n 's/^[Mm][Cc][Pp]-[Ss]ession-[Ii]d: *//p')
	[ -n "$session" ] || fail 'initialize gives no Mcp-Session-Id'
	post '{"jsonrpc":"2.0","method":"notifications/initialized"}'
	[ "$status" = 202 ] || fail "notifications/initialized is answered with $status"
	done_with 'a session begins: 200, then 202'
}

the_tools_are_there()
{
	post '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
	[ "$(jq '.result.tools | length' "$work/body")" = 8 ] || fail 'there are not exactly eight tools'
	done_with 'exactly eight tools'
}

a_command_runs()
{
	tool open_session
	handle=$(jq -r '.result.content[0].text' "$work/body")
	tool exec command "printf '%s\\n' $marker"
	text=$(jq -r '.result.content[0].text' "$work/body")
	case $text in *"$marker"*'[exit 0]'*) ;; *) fail "exec says: $text" ;; esac
	done_with 'a command runs and ends with 0'
}

files_stay()
{
	tool write path "$file" text "$marker"
	tool close_session
	first=$handle
	tool open_session
	handle=$(jq -r '.result.content[0].text' "$work/body")
	[ "$handle" = "$first" ] || fail "the sandbox was $first and is $handle after it was opened again"
	tool read path "$file"
	[ "$(jq -r '.result.content[0].text' "$work/body")" = "$marker" ] || fail 'what was written is not what is read'
	done_with 'a file is there after the sandbox was closed and opened again'
}

cancelled_is_dead()
{
	bystander=$(job other)
	victim=$(job beat)
	grows other || fail 'the bystander does not run'
	grows beat || fail 'the daemonised descendant does not run'
	tool job_cancel job_id "$victim"
	wait_terminal "$victim"
	if grows beat; then fail 'a descendant that ignores TERM lives on after its job was cancelled'; fi
	grows other || fail 'a job that nobody cancelled has ended'
	tool job_cancel job_id "$bystander"
	wait_terminal "$bystander"
	done_with 'a cancelled job leaves nothing, and its neighbour lives on'
}

# NAME: a job whose grandchild has left it, ignores TERM, and writes as long as it lives.
job()
{
	tool job_exec command "( ( trap '' TERM HUP INT; while :; do echo x >>$file.$1; sleep 0.2; done ) >/dev/null 2>&1 & ) ; sleep 600"
	jq -r '.result.content[0].text | fromjson.job_id' "$work/body"
}

# Whether what a job's grandchild writes gets more within some seconds.
grows()
{
	before=$(size "$1")
	for _ in 1 2 3 4 5 6; do
		sleep 0.5
		[ "$(size "$1")" = "$before" ] || return 0
	done
	return 1
}

size()
{
	tool exec command "wc -c <$file.$1 2>/dev/null || echo 0"
	jq -r '.result.content[0].text' "$work/body" | head -n 1 | tr -d ' '
}

wait_terminal()
{
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		tool job_poll job_id "$1"
		[ "$(jq -r '.result.content[0].text | fromjson.state' "$work/body")" != terminal ] || return 0
		sleep 1
	done
	fail "job $1 does not end within 20 seconds of its cancellation"
}

# NAME [ARGUMENT VALUE]...: calls a tool, which must succeed.
tool()
{
	called=$1
	shift
	case $called in open_session|job_poll|job_cancel) ;; *) set -- session "$handle" "$@" ;; esac
	arguments=$(jq -n '[$ARGS.positional | while(length > 0; .[2:]) | {(.[0]): .[1]}] | add // {}' --args -- "$@")
	post "$(jq -n --arg name "$called" --argjson arguments "$arguments" \
		'{jsonrpc: "2.0", id: 3, method: "tools/call", params: {name: $name, arguments: $arguments}}')"
	[ "$status" = 200 ] || fail "$called is answered with $status: $(cat "$work/body")"
	[ "$(jq -r .result.isError "$work/body")" = false ] || fail "$called fails: $(cat "$work/body")"
}

# The token goes to curl through a pipe: what is in its arguments, every user of the host can read.
post()
{
	printf '%s' "$1" >"$work/request"
	status=$(printf 'header = "Authorization: Bearer %s"\n' "$PLAYGROUND_TOKEN" | curl -sS -m 120 --config - \
		-D "$work/head" -o "$work/body" -w '%{http_code}' -H 'Content-Type: application/json' \
		${session:+-H "Mcp-Session-Id: $session"} --data-binary "@$work/request" "$url/") || fail "the connection to $url failed"
}

done_with()
{
	echo "ok   $1"
}

fail()
{
	echo "smoke: $1" >&2
	exit 1
}

main
