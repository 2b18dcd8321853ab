#!/bin/sh
# The faculty that registers a person, as far as a plan can tell: once a person, in the pile that it is given.
[ "$1" = --pile ] && [ "$3" = add ] && [ "$5" = --id ] && [ "$7" = --display-name ] || exit 64
[ "$9" = --affinity ] && [ "${10}" = assistant ] && [ "${11}" = --source ] && [ "${12}" = playground ] || exit 64
[ "$#" = 12 ] && [ "$4" = "$8" ] && [ "${#6}" = 32 ] && [ -f "$2" ] || exit 64
grep -q "^person $6 " "$2" || printf 'person %s %s\n' "$6" "$4" >> "$2"
