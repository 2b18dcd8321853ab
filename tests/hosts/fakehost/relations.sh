#!/bin/sh
# The faculty that registers a person, as far as a plan can tell: once a person, in the pile that it is given.
if [ "$3" = --key ]; then
  key=$4 pile=$2
  [ "$1" = --pile ] && [ -s "$key" ] && [ "${#TRIBLESPACE_COLLECTION_RELATIONS}" = 64 ] || exit 64
  shift 4
else
  [ "$1" = --pile ] || exit 64
  pile=$2
  shift 2
fi
[ "$#" = 10 ] && [ "$1" = add ] && [ "$3" = --id ] && [ "${#4}" = 32 ] && [ "$5" = --display-name ] || exit 64
[ "$2" = "$6" ] && [ "$7 $8 $9 ${10}" = '--affinity assistant --source playground' ] && [ -f "$pile" ] || exit 64
grep -q "^person $4 " "$pile" || printf 'person %s %s\n' "$4" "$2" >> "$pile"
