"""What `playground user attach` may print, and what it may not."""

from host import JAIL

# One object with both members, whatever stands beside them and however it is set.
ATTACHED = [
    ("other order, other space", '\n {"persona" : "alice assistant",\n"session_id":"%s"}  ' % JAIL),
    ("another member", '{"session_id":"%s","persona":"p","since":[1,{"a":null}]}' % JAIL),
    ("escapes", '{"session_id":"\\u0070layground-alice-0123abcd","persona":"a \\"b\\" \\\\ $(id) `id` \'c\' é"}'),
    ("a persona that looks like an option", '{"session_id":"%s","persona":"-u root"}' % JAIL),
    ("a persona that looks like a fault", '{"session_id":"%s","persona":"fault of nobody"}' % JAIL),
    ("no line end", '{"session_id":"%s","persona":"x=y"}' % JAIL),
]

NOT_ATTACHED = [
    ("nothing", ""),
    ("a line end", "\n"),
    ("no JSON", "attached\n"),
    ("half an object", '{"session_id":"%s",' % JAIL),
    ("a word behind it", '{"session_id":"%s","persona":"p"} done' % JAIL),
    ("two objects", '{"session_id":"%s","persona":"p"}\n{"session_id":"%s","persona":"p"}\n' % (JAIL, JAIL)),
    ("a list", '["%s","p"]' % JAIL),
    ("a list of one object", '[{"session_id":"%s","persona":"p"}]' % JAIL),
    ("null", "null"),
    ("a string", '"%s"' % JAIL),
    ("a number", "1"),
    ("no session_id", '{"persona":"p"}'),
    ("no persona", '{"session_id":"%s"}' % JAIL),
    ("session_id null", '{"session_id":null,"persona":"p"}'),
    ("session_id a number", '{"session_id":17,"persona":"p"}'),
    ("session_id a list", '{"session_id":["%s"],"persona":"p"}' % JAIL),
    ("session_id empty", '{"session_id":"","persona":"p"}'),
    ("session_id like an option", '{"session_id":"-R","persona":"p"}'),
    ("session_id a folder up", '{"session_id":"..","persona":"p"}'),
    ("session_id with a slash", '{"session_id":"a/b","persona":"p"}'),
    ("session_id with a space", '{"session_id":"%s x","persona":"p"}' % JAIL),
    ("session_id with a line end", '{"session_id":"%s\\n","persona":"p"}' % JAIL),
    ("session_id of two lines", '{"session_id":"%s\\nb","persona":"p"}' % JAIL),
    ("session_id with a NUL", '{"session_id":"%s\\u0000","persona":"p"}' % JAIL),
    ("session_id with a letter of another script", '{"session_id":"pl\\u0430yground","persona":"p"}'),
    ("session_id twice", '{"session_id":"other","session_id":"%s","persona":"p"}' % JAIL),
    ("persona twice", '{"session_id":"%s","persona":"a","persona":"p"}' % JAIL),
    ("a member twice, deeper", '{"session_id":"%s","persona":"p","x":{"a":1,"a":2}}' % JAIL),
    ("persona empty", '{"session_id":"%s","persona":""}' % JAIL),
    ("persona a number", '{"session_id":"%s","persona":3}' % JAIL),
    ("persona an object", '{"session_id":"%s","persona":{"p":1}}' % JAIL),
    ("persona with a line end", '{"session_id":"%s","persona":"p\\nHOME=/evil"}' % JAIL),
    ("persona with a carriage return", '{"session_id":"%s","persona":"p\\r"}' % JAIL),
    ("persona with a NUL", '{"session_id":"%s","persona":"p\\u0000"}' % JAIL),
    ("persona with DEL", '{"session_id":"%s","persona":"p\\u007f"}' % JAIL),
    ("persona with a C1 control character", '{"session_id":"%s","persona":"p\\u009b1m"}' % JAIL),
    ("members in other letters", '{"Session_Id":"%s","Persona":"p"}' % JAIL),
]
