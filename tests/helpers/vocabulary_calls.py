"""For each module, expressions that use every name that programs may use."""

from __future__ import annotations

# ruff: noqa: E501

ENTRIES: dict[str, list[str]] = {
    "ast": ["ast.literal_eval(\"{'a': [1, -2.5, (None, b'x')], 'b': {True}}\")", "ast.literal_eval('[f(x)]')"],
    "base64": [
        f"base64.{name}decode(base64.{name}encode(b'any \\x00 bytes'))"
        for name in ("b64", "urlsafe_b64", "standard_b64", "b32", "b16", "b85")
    ],
    "bisect": [
        *(f"bisect.{f}([1, 2, 2, 3], 2, lo=0, hi=4, key=abs)" for f in ("bisect", "bisect_left", "bisect_right")),
        *(f"bisect.{f}([1, 2, 3], 2, lo=0, hi=2, key=abs)" for f in ("insort", "insort_left", "insort_right")),
    ],
    "calendar": [
        "[calendar.isleap(2024), calendar.leapdays(2000, 2024), calendar.monthrange(2024, 2), calendar.weekday(2024, 2, 29)]",
        "[calendar.month(2024, 2, w=3, l=2), calendar.calendar(2024, w=2, l=1, c=4, m=4), calendar.monthcalendar(2024, 2)]",
        "[calendar.timegm(__import__('datetime').datetime(2024, 2, 29).timetuple()), calendar.IllegalMonthError]",
        "[list(calendar.day_abbr), list(calendar.day_name), list(calendar.month_abbr), calendar.month_name[2]]",
        "[calendar.day_abbr, calendar.month_name, calendar.month_name[1:3], len(calendar.day_name)]",
        "[calendar.MONDAY, calendar.TUESDAY, calendar.WEDNESDAY, calendar.THURSDAY, calendar.FRIDAY, calendar.SATURDAY, calendar.SUNDAY]",
    ],
    "collections": [
        "collections.Counter('hello').most_common(2)",
        "sorted(collections.Counter(a=2).elements())",
        "collections.Counter('aab') - collections.Counter('a')",
        "collections.Counter('aab').total()",
        "collections.OrderedDict([('a', 1)])",
        "collections.defaultdict(list)",
        "collections.deque([1, 2, 3], maxlen=2)",
    ],
    "copy": [
        "copy.deepcopy([__import__('io').StringIO('a')])[0].read()",
        "[copy.copy(__import__('io').StringIO('a')), copy.copy(__import__('string').Template('$a'))]",
        "copy.copy([1, [2]])",
        "copy.deepcopy({'a': [1, (2, {3})]})",
        "copy.deepcopy(__import__('re').compile('a'))",
    ],
    "csv": [
        "csv.writer(__import__('io').StringIO())",
        "ValueError({'a': csv.DictWriter(__import__('io').StringIO(), ['a'])})",
        "list(csv.reader(['a;b', '1;\"2;3\"'], delimiter=';', quotechar='\"', skipinitialspace=True, strict=True))",
        "list(csv.reader(['a,b'], quoting=csv.QUOTE_NONE, doublequote=True, escapechar='\\\\', lineterminator='\\n'))",
        "list(csv.DictReader(['a,b', '1,2,3'], restkey='more', restval=''))",
        "list(csv.DictReader(['1,2'], fieldnames=['x', 'y']))",
        "csv.writer(__import__('io').StringIO(), lineterminator='\\n').writerow([1, 'a,b'])",
        "csv.DictWriter(__import__('io').StringIO(), fieldnames=['a'], extrasaction='ignore').writerow({'a': 1, 'b': 2})",
        "[csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE, csv.Error]",
    ],
    "datetime": [
        "datetime.date(year=2024, month=2, day=29).isoformat()",
        "datetime.date.fromisoformat('2024-02-29').strftime('%A %d %B %Y %j %U')",
        "f'{datetime.datetime(2024, 2, 29, 13, 5):%Y-%m-%d %H:%M %p %Z}'",
        "[datetime.date.fromordinal(738000), datetime.date.fromisocalendar(2024, 9, 4), datetime.date.min, datetime.date.max]",
        "datetime.time(1, 2, 3).isoformat()",
        "[datetime.time.fromisoformat('01:02:03'), datetime.time.min, datetime.time.max]",
        "datetime.datetime.strptime('29 Feb 2024 13:05 +0100', '%d %b %Y %H:%M %z')",
        "datetime.datetime.fromisoformat('2024-02-29T13:05:00+01:00').astimezone(datetime.UTC)",
        "datetime.datetime.fromordinal(738000)",
        "datetime.datetime.combine(datetime.date(2024, 1, 1), datetime.time(1))",
        "datetime.datetime.fromtimestamp(86400, tz=datetime.timezone.utc)",
        "datetime.datetime.fromtimestamp(86400)",
        "datetime.datetime(2024, 1, 1).timestamp()",
        "datetime.datetime(2024, 1, 1).astimezone().tzname()",
        "[datetime.datetime.min, datetime.datetime.max]",
        "datetime.timedelta(days=1, hours=2) * 3 // datetime.timedelta(minutes=7)",
        "[datetime.timedelta.min, datetime.timedelta.max]",
        "datetime.timezone(datetime.timedelta(hours=2))",
        "datetime.datetime(2024, 1, 1).ctime()",
        "datetime.date(2024, 1, 1).timetuple()",
    ],
    "decimal": [
        "decimal.Decimal('1') / decimal.Decimal('7')",
        "decimal.Decimal('2.675').quantize(decimal.Decimal('0.01'), rounding=decimal.ROUND_HALF_UP)",
        "f\"{decimal.Decimal('1234.5'):,.2f}\"",
        "[decimal.ROUND_HALF_EVEN, decimal.ROUND_HALF_DOWN, decimal.ROUND_UP, decimal.ROUND_DOWN, decimal.ROUND_CEILING]",
        "[decimal.ROUND_FLOOR, decimal.InvalidOperation, decimal.DivisionByZero]",
        "decimal.Decimal('2').sqrt()",
        "sum([decimal.Decimal('0.1')] * 3)",
    ],
    "difflib": [
        "f'{difflib.SequenceMatcher()!s}'",
        "difflib.SequenceMatcher(a='abcd', b='bcde', autojunk=False).get_opcodes()",
        "difflib.SequenceMatcher(None, 'abcd', 'bcde').ratio()",
        "list(difflib.unified_diff(['a\\n', 'b\\n'], ['a\\n', 'c\\n'], fromfile='x', tofile='y', n=1, lineterm=''))",
        "list(difflib.context_diff(['a\\n'], ['b\\n'], fromfile='x', tofile='y'))",
        "list(difflib.ndiff(['one\\n', 'two\\n'], ['ore\\n', 'tree\\n']))",
        "difflib.get_close_matches('appel', ['ape', 'apple', 'peach'], n=2, cutoff=0.5)",
    ],
    "fractions": [
        "fractions.Fraction('3/4') + fractions.Fraction(numerator=1, denominator=3)",
        "fractions.Fraction(3.14159).limit_denominator(100)",
    ],
    "functools": ["functools.reduce(lambda a, b: a * b, [1, 2, 3], 4)"],
    "hashlib": [
        *(f"[hashlib.{n}(b'x'), hashlib.{n}().copy()]" for n in ("md5", "sha3_512", "blake2s")),
        *(f"hashlib.{n}(b'x').hexdigest()" for n in ("sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512")),
        *(f"hashlib.{n}(b'x', usedforsecurity=False).hexdigest()" for n in ("md5", "sha1")),
        *(f"hashlib.{n}(b'x', digest_size=8).hexdigest()" for n in ("blake2b", "blake2s")),
    ],
    "heapq": [
        "heapq.heappush([1, 3], 2)",
        "[heapq.heappop([1, 3]), heapq.heapify([3, 1]), heapq.heapreplace([1, 3], 2), heapq.heappushpop([2, 3], 1)]",
        "list(heapq.merge([3, 1], [2], key=abs, reverse=True))",
        "[heapq.nlargest(2, [1, 3, 2], key=abs), heapq.nsmallest(2, [1, 3, 2], key=abs)]",
    ],
    "html": ["html.escape('<a href=\"x\">', quote=True)", "html.unescape('&lt;&eacute;&#x41;&notit;')"],
    "io": [
        "'%s, {}'.format([io.StringIO('a')]) % (io.StringIO(),)",
        "io.StringIO(initial_value='a\\nb', newline=None).readlines()",
        "[io.StringIO('ab').seek(0, 2), io.StringIO('ab').truncate(1), io.StringIO('ab').read(1), io.StringIO('a').write('b')]",
    ],
    "ipaddress": [
        "[ipaddress.ip_address('10.0.0.1') in ipaddress.ip_network('10.1.0.0/8', strict=False), ipaddress.ip_interface('10.0.0.1/8')]",
        "[list(ipaddress.IPv4Network('10.0.0.0/30', strict=True).hosts()), list(ipaddress.IPv6Network('::/127', strict=True).subnets())]",
        "[ipaddress.IPv4Address(7), ipaddress.IPv6Address('::1').exploded, ipaddress.IPv4Interface('1.2.3.4/24').network]",
        "[ipaddress.IPv6Interface('::1/64').ip, ipaddress.AddressValueError, ipaddress.NetmaskValueError]",
        "list(ipaddress.collapse_addresses([ipaddress.ip_network('10.0.0.0/9'), ipaddress.ip_network('10.128.0.0/9')]))",
        "list(ipaddress.summarize_address_range(ipaddress.ip_address('10.0.0.1'), ipaddress.ip_address('10.0.0.9')))",
        "f\"{ipaddress.ip_address('10.0.0.1'):#_x} {ipaddress.ip_network('10.0.0.0/8').supernet()}\"",
    ],
    "itertools": [
        "list(itertools.accumulate([1, 2, 3], lambda a, b: a * b, initial=2))",
        "list(itertools.chain([1], [2]))",
        "list(itertools.chain.from_iterable([[1], [2]]))",
        "list(itertools.combinations('abc', 2)) + list(itertools.combinations_with_replacement('ab', 2))",
        "list(itertools.compress('abc', [1, 0, 1])) + list(itertools.pairwise('abc'))",
        "list(itertools.dropwhile(str.isdigit, '12a3')) + list(itertools.takewhile(str.isdigit, '12a3'))",
        "list(itertools.filterfalse(str.isdigit, '1a2b')) + list(itertools.islice('abcdef', 1, 5, 2))",
        "[(k, list(g)) for k, g in itertools.groupby(['a', 'b', 'B'], key=str.lower)]",
        "list(itertools.repeat('a', times=2))",
        "list(itertools.permutations('abc', 2)) + list(itertools.product('ab', repeat=2))",
        "list(itertools.starmap(pow, [(2, 3)])) + list(itertools.zip_longest('ab', 'c', fillvalue='-'))",
    ],
    "json": [
        "json.dumps({'b': [1.5, None, True], 'a': 'é'}, sort_keys=True, indent=2, ensure_ascii=False)",
        "json.dumps({1: 2}, skipkeys=True, check_circular=True, allow_nan=False, separators=(',', ':'))",
        "json.dumps([{1}], default=str)",
        'json.loads(\'{"a": [1, 2.5e3, "\\\\u00e9"]}\')',
        "json.JSONDecodeError",
    ],
    "math": [
        *(
            f"math.{n}(0.5)"
            for n in "acos asin asinh atan atanh cbrt ceil cos cosh degrees erf erfc exp exp2 expm1 fabs floor frexp gamma isfinite"
            " isinf isnan lgamma log log10 log1p log2 modf radians sin sinh sqrt tan tanh trunc ulp".split()
        ),
        "math.acosh(1.5)",
        "[math.atan2(1, 2), math.comb(5, 2), math.copysign(1, -2), math.dist([0, 0], [3, 4]), math.factorial(20)]",
        "[math.fmod(7, 3), math.fsum([0.1] * 10), math.gcd(12, 18), math.hypot(3, 4), math.isqrt(17), math.lcm(4, 6)]",
        "[math.isclose(1, 1.01, rel_tol=0.1, abs_tol=0.0), math.ldexp(1, 3), math.nextafter(1, 2), math.perm(5, 2)]",
        "[math.pow(2, 3), math.prod([2, 3], start=4), math.remainder(7, 4), math.e, math.inf, math.nan, math.pi, math.tau]",
    ],
    "operator": [
        "sorted([{'n': 2}, {'n': 1}], key=operator.itemgetter('n')) + list(map(operator.neg, [1]))",
        *(
            f"operator.{n}(6, 3)"
            for n in "add and_ eq floordiv ge gt is_ is_not le lshift lt mod mul ne or_ pow rshift sub truediv xor".split()
        ),
        *(f"operator.{n}(6)" for n in "abs index inv invert neg not_ pos truth".split()),
        "[operator.concat('a', 'b'), operator.contains('ab', 'a'), operator.getitem({'a': 1}, 'a')]",
    ],
    "posixpath": [
        "[posixpath.basename('/a/b.c'), posixpath.dirname('/a/b'), posixpath.splitext('a.tar.gz'), posixpath.split('/a/b')]",
        "[posixpath.commonpath(['/a/b', '/a/c']), posixpath.commonprefix(['ab', 'ac']), posixpath.isabs('/a')]",
        "[posixpath.join('a', '/b', 'c'), posixpath.normpath('a/../b//c/.'), posixpath.relpath('a/b', start='a/c')]",
    ],
    "re": [
        "re.compile('(?P<y>\\\\d+)-(\\\\w)', flags=re.IGNORECASE).search('x 12-A').groupdict()",
        "[m.span() for m in re.finditer('a', 'banana', flags=re.M | re.MULTILINE)]",
        "re.sub('(a)(b)', r'\\\\2\\\\g<1>', 'abab', count=1)",
        "re.sub('a', lambda m: m.group().upper(), 'banana', flags=re.I)",
        "re.subn('a', 'b', 'banana', count=2)",
        "[re.match('a', 'ab').end(), re.fullmatch('ab', 'ab').groups(), re.search('b', 'ab').start()]",
        "[re.findall('(a)(b)?', 'aab'), re.split('[,;]', 'a,b;c', maxsplit=1), re.escape('a.b')]",
        "[re.A, re.ASCII, re.S, re.DOTALL, re.X, re.VERBOSE, re.U, re.UNICODE, re.error]",
        "[re.findall('[[a]', 'a['), re.findall('(a|b)' * 300 + '|(c)', 'c', 128)]",
        "re.match('(?P<a>x)', 'x').expand(r'<\\\\g<a>>')",
    ],
    "shlex": [
        "shlex.split('a \"b c\" # d', comments=True, posix=True)",
        "[shlex.quote('a b'), shlex.join(['a', 'b c'])]",
    ],
    "statistics": [
        *(
            f"statistics.{n}([1.5, 2.5, 2.5, 4.0])"
            for n in "mean fmean geometric_mean harmonic_mean median median_low median_high mode multimode pstdev pvariance stdev"
            " variance".split()
        ),
        "statistics.quantiles([1, 2, 3, 4, 5], n=4, method='inclusive')",
        "[statistics.covariance([1, 2, 3], [1, 2, 4]), statistics.correlation([1, 2, 3], [1, 2, 4])]",
        "statistics.linear_regression([1, 2, 3], [1, 2, 4])",
        "statistics.StatisticsError",
    ],
    "string": [
        "[string.Template('$a'), str(string.Template('$a'))]",
        "[string.ascii_letters, string.ascii_lowercase, string.ascii_uppercase, string.digits, string.hexdigits, string.octdigits]",
        "[string.punctuation, string.printable, string.whitespace, string.capwords('a bc')]",
        "string.Template('$a and ${b}').substitute(a=1, b=2) + string.Template('$x').safe_substitute()",
    ],
    "sys": ["sys.maxsize"],
    "textwrap": [
        "[textwrap.dedent('  a\\n   b'), textwrap.indent('a\\nb', prefix='> '), textwrap.shorten('a b c d', width=5, placeholder='…')]",
        "textwrap.fill('one two three four', width=9, initial_indent='- ', subsequent_indent='  ', break_long_words=False)",
        "textwrap.wrap('one-two three\\tfour', width=8, break_on_hyphens=True, expand_tabs=True, max_lines=2, placeholder=' …')",
    ],
    "tomllib": ["tomllib.loads('a = 1979-05-27T07:32:00Z\\n[b]\\nc = [1.5, true]\\n')", "tomllib.TOMLDecodeError"],
    "unicodedata": [
        "[unicodedata.bidirectional('a'), unicodedata.category('é'), unicodedata.combining('\\u0301'), unicodedata.decimal('3')]",
        "[unicodedata.decomposition('é') if False else unicodedata.digit('3'), unicodedata.east_asian_width('あ')]",
        "[unicodedata.is_normalized('NFC', 'é'), unicodedata.lookup('SNOWMAN'), unicodedata.mirrored('('), unicodedata.name('é')]",
        "[unicodedata.normalize('NFKD', 'ﬁé'), unicodedata.numeric('½')]",
    ],
    "urllib.parse": [
        "urllib.parse.parse_qs('a=1&a=2&b=', keep_blank_values=True, strict_parsing=False, encoding='utf-8', max_num_fields=9)",
        "urllib.parse.parse_qsl('a=1;b=2', separator=';')",
        "[urllib.parse.quote('a b/é', safe=''), urllib.parse.quote_plus('a b'), urllib.parse.unquote('%C3%A9'), urllib.parse.unquote_plus('a+b')]",
        "[urllib.parse.urldefrag('http://a/b#c').url, urllib.parse.urlencode({'a': [1, 2]}, doseq=True), urllib.parse.urljoin('http://a/b/', '../c')]",
        "[urllib.parse.urlparse('http://u:p@h:80/p;x?q#f').port, urllib.parse.urlsplit('//h/p').netloc]",
        "[urllib.parse.urlunparse(('http', 'h', '/p', '', 'q', '')), urllib.parse.urlunsplit(('http', 'h', '/p', '', ''))]",
        "urllib.parse.urlsplit('http://[::1]:80/').hostname",
    ],
    "uuid": [
        "uuid.uuid5(uuid.NAMESPACE_DNS, 'example.org')",
        "[uuid.UUID(hex='12345678123456781234567812345678'), uuid.UUID(int=1)]",
        "[uuid.NAMESPACE_URL, uuid.NAMESPACE_OID, uuid.NAMESPACE_X500]",
    ],
    "zoneinfo": [
        "__import__('datetime').datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).isoformat()",
        "__import__('datetime').datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo(key='America/New_York')).dst()",
        "[zoneinfo.ZoneInfo('UTC').key, zoneinfo.ZoneInfo('Asia/Kathmandu'), zoneinfo.ZoneInfoNotFoundError]",
    ],
}

#: Built-ins and methods that load a module when they are first used.
PLAIN = [
    "[abs(-1), all([1]), any([0]), ascii('é'), bin(5), bool(0), chr(233), divmod(7, 2), format(3.14159, '.2f'), hex(255)]",
    "[bytes('é', 'utf-8'), bytes([1]), dict(a=1), list(enumerate('ab', start=1)), list(filter(None, [0, 1])), float('1e3')]",
    "[frozenset([1]), int('ff', 16), isinstance(1, (int, str)), next(iter([1])), len('ab'), list(map(str, [1])), max(1, 2), min([1])]",
    "[oct(8), ord('a'), pow(2, 10, 7), list(range(3)), repr('x'), list(reversed([1, 2])), round(2.675, 2), sorted({3, 1})]",
    "[slice(1, 2), str(b'x', 'ascii'), sum([1, 2], start=3), tuple('ab'), list(zip('ab', [1, 2], strict=True)), set(), print()]",
    "[int.from_bytes(b'ab', 'big'), (258).to_bytes(2, 'little'), float.fromhex('0x1p3'), (3.5).as_integer_ratio(), (2.0).hex()]",
    "[dict.fromkeys('ab'), str.maketrans('a', 'b'), bytes.fromhex('ff'), 'abc'.translate({97: 'x'}), 'ß'.casefold()]",
    "['é'.encode(e) for e in ('utf-8', 'utf-16', 'utf-32', 'latin-1', 'cp1252', 'utf-8-sig', 'unicode_escape', 'utf-16-le')]",
    "['é'.encode('ascii', e) for e in ('ignore', 'replace', 'backslashreplace', 'xmlcharrefreplace', 'namereplace')]",
    "[b'\\xff'.decode('utf-8', e) for e in ('ignore', 'replace', 'backslashreplace')]",
    "[f'{1234567.891:,.1f}', f'{255:#x}', f'{\"a\":^5}', f'{0.5:%}', '%s %05.1f %r' % ('a', 2.5, 'b')]",
    "[x.expandtabs(4) for x in ['a\\tb']] + ['a,b'.partition(','), 'Ab'.swapcase(), 'a b'.title(), '42'.zfill(5)]",
]
