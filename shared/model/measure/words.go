package measure

import "strings"

// set makes a set of the words of a line.
func set(line string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(line) {
		m[w] = true
	}
	return m
}

// numbers makes a table of "word value word value".
func numbers(line string) map[string]float64 {
	m := map[string]float64{}
	f := strings.Fields(line)
	for i := 0; i+1 < len(f); i += 2 {
		v, _, ok := value(f[i+1], false)
		if !ok {
			panic("measure: bad table entry " + f[i] + " " + f[i+1])
		}
		m[f[i]] = v
	}
	return m
}

var (
	small = numbers(`two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 ten 10 eleven 11 twelve 12 thirteen 13 fourteen 14
		fifteen 15 sixteen 16 seventeen 17 eighteen 18 nineteen 19`)
	// foreignSmall are read in texts that are not English only: "due", "once" and "elf" are English words too.
	foreignSmall = numbers(`zwei 2 drei 3 vier 4 fünf 5 sechs 6 sieben 7 acht 8 neun 9 zehn 10 elf 11 zwölf 12 dreizehn 13 vierzehn 14 fünfzehn 15 sechzehn 16
		zwanzig 20 dreißig 30 vierzig 40 fünfzig 50 sechzig 60 siebzig 70 achtzig 80 neunzig 90
		deux 2 trois 3 quatre 4 cinq 5 six 6 sept 7 huit 8 neuf 9 dix 10 onze 11 douze 12 quinze 15 vingt 20 trente 30 quarante 40 cinquante 50 soixante 60
		dos 2 tres 3 cuatro 4 cinco 5 seis 6 siete 7 ocho 8 nueve 9 diez 10 once 11 doce 12 veinte 20 treinta 30 cuarenta 40 cincuenta 50
		due 2 tre 3 quattro 4 cinque 5 sei 6 sette 7 otto 8 nove 9 dieci 10 undici 11 dodici 12 venti 20 trenta 30 quaranta 40 cinquanta 50`)
	tens = numbers(`twenty 20 thirty 30 forty 40 fifty 50 sixty 60 seventy 70 eighty 80 ninety 90`)
	ones = numbers(`one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9`)

	scales = numbers(`hundred 100 thousand 1000 million 1000000 millions 1000000 billion 1000000000 billions 1000000000 trillion 1000000000000
		mn 1000000 mln 1000000 bn 1000000000 tn 1000000000000 lakh 100000 crore 10000000 dozen 12`)
	foreignScales = numbers(`hundert 100 tausend 1000 million 1000000 millionen 1000000 mio 1000000 milliarde 1000000000 milliarden 1000000000 mrd 1000000000 billionen 1000000000000
		cents 100 mille 1000 millions 1000000 milliard 1000000000 milliards 1000000000 mil 1000 millón 1000000 millones 1000000 milioni 1000000 milione 1000000 miliardi 1000000000 miliardo 1000000000`)
	hanScales = numbers(`万 10000 萬 10000 億 100000000 亿 100000000 千 1000 百 100 百万 1000000 兆 1000000000000`)

	// fractions stand after a count ("two thirds") or an article with "of" after it ("a third of").
	fractions = map[string]float64{"half": 1. / 2, "third": 1. / 3, "thirds": 1. / 3, "quarter": 1. / 4, "quarters": 1. / 4, "fifth": 1. / 5, "fifths": 1. / 5,
		"sixth": 1. / 6, "sixths": 1. / 6, "eighth": 1. / 8, "eighths": 1. / 8, "tenth": 1. / 10, "tenths": 1. / 10,
		"drittel": 1. / 3, "viertel": 1. / 4, "fünftel": 1. / 5, "tiers": 1. / 3, "quart": 1. / 4, "tercio": 1. / 3, "tercios": 1. / 3, "terzo": 1. / 3, "terzi": 1. / 3}

	articles = set("a an the one ein eine einem einer un une una uno le la el il")
	of       = set("of the der des de du des della del los las all aller dei")

	percents = set("percent pct prozent pourcent procent 百分比")

	// multiples in one word.
	multiples = map[string]float64{"twice": 2, "double": 2, "doubled": 2, "doubles": 2, "twofold": 2, "tripled": 3, "triples": 3, "triple": 3, "thrice": 3, "threefold": 3,
		"quadrupled": 4, "fourfold": 4, "fivefold": 5, "tenfold": 10, "halved": 0.5, "halves": 0.5,
		"doppelt": 2, "zweimal": 2, "dreimal": 3, "viermal": 4, "fünfmal": 5, "zehnmal": 10, "anderthalbmal": 1.5, "verdoppelte": 2, "doble": 2, "triplo": 3, "doppio": 2}
	much       = set("much many viel viele")
	sizes      = set("size length height width depth weight speed age area volume price")
	isForms    = set("is are was were")
	timesWords = set("times mal fois veces volte x × fold 倍")

	approxWords = set("about around roughly approximately approx circa ca nearly almost some ~ ≈ close etwa rund ungefähr zirka fast knapp environ presque près " +
		"aproximadamente unos unas cerca casi alrededor quasi 约 約 およそ 大約 大约")
	betweenWords = set("between zwischen entre tra fra")
	fromWords    = set("from von de da desde dal")
	toWords      = set("to bis à a al")
	andWords     = set("and und et y e")
	dashes       = set("- – — ‒ − ~ 〜 ～")

	// scopeWords say for which cases a sentence holds.
	scopeWords = set("under over aged above below at after within beyond past unter über ab bei nach sous après à chez sobre bajo tras desde")

	places = set("at bei à")

	atLeast = []string{"at least", "more than", "over", "above", "no less than", "no fewer than", "not less than", "upwards of", "in excess of", "exceeding", "exceeds", "mindestens",
		"mehr als", "über", "au moins", "plus de", "al menos", "más de", "almeno", "più di"}
	atMost = []string{"at most", "less than", "fewer than", "under", "below", "up to", "no more than", "not more than", "at the most", "höchstens", "weniger als", "bis zu", "unter",
		"au plus", "moins de", "jusqu'à", "como máximo", "menos de", "hasta", "al massimo", "meno di"}

	// labels are nouns whose number is a name, not a quantity.
	labels = set("version phase type model chapter figure fig table section article no nr number level grade stage class group step line route room floor mark part volume season tier " +
		"episode highway flight section unit block zone category band page kapitel abschnitt artikel stufe typ klasse fase tipo artículo capítulo")

	months = numbers(`january 1 february 2 march 3 april 4 may 5 june 6 july 7 august 8 september 9 october 10 november 11 december 12
		jan 1 feb 2 mar 3 apr 4 jun 6 jul 7 aug 8 sep 9 sept 9 oct 10 nov 11 dec 12
		januar 1 jänner 1 februar 2 märz 3 mai 5 juni 6 juli 7 oktober 10 dezember 12
		janvier 1 février 2 mars 3 avril 4 juin 6 juillet 7 août 8 septembre 9 octobre 10 novembre 11 décembre 12
		enero 1 febrero 2 marzo 3 abril 4 mayo 5 junio 6 julio 7 agosto 8 septiembre 9 octubre 10 noviembre 11 diciembre 12
		gennaio 1 febbraio 2 aprile 4 maggio 5 giugno 6 luglio 7 settembre 9 ottobre 10 dicembre 12`)
	// commonMonths are also everyday words: they are months only beside a number or after a preposition.
	commonMonths = set("may march mar sept mars mai nov dec jan sep")

	ordinals = map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "ersten": 1, "zweiten": 2, "dritten": 3, "vierten": 4,
		"premier": 1, "première": 1, "deuxième": 2, "troisième": 3, "quatrième": 4, "primer": 1, "segundo": 2, "tercer": 3, "cuarto": 4}
	quarterWords = set("quarter quartal trimestre")
	halfWords    = set("half halbjahr semestre hälfte")
	seasons      = map[string]string{"spring": "spring", "summer": "summer", "autumn": "autumn", "winter": "winter", "frühjahr": "spring", "frühling": "spring", "sommer": "summer", "herbst": "autumn",
		"printemps": "spring", "été": "summer", "automne": "autumn", "hiver": "winter", "primavera": "spring", "verano": "summer", "otoño": "autumn", "invierno": "winter",
		"estate": "summer", "autunno": "autumn", "inverno": "winter"}
	partWords = map[string]string{"early": "early", "mid": "mid", "late": "late", "anfang": "early", "mitte": "mid", "ende": "late", "début": "early", "fin": "late"}

	// timePrepositions come before a year or a month.
	timePrepositions = set("in since by until till of from to between and during before after through for around about circa early late mid im seit bis ab von zwischen und vor nach en depuis " +
		"jusqu'en entre et de desde hasta y nel dal al tra fra e durante fiscal year jahr année año anno as ")

	yearFollowers = set("um auf zu mit du des par pour por con su per") // "stiegen 2022 um 3 Prozent"

	continentalWords = set("der die das im am zum zur wurden werden sind waren als nach vor durch oder sich la de en un y o al se su tiene à au aux qui que und ist nicht ein eine mit von für den dem auf bei wurde le les des est une dans pour sur avec du el los las una por con para del il gli che della di nel een het van " +
		"og er på och är não uma em según selon laut")
	englishWords = set("the of and is was to a for with by on at are were has have that from")
)

// continental guesses whether a decimal comma is usual in the language of the text.
func continental(toks []token) bool {
	score := 0
	for _, t := range toks {
		if continentalWords[t.low] {
			score++
		}
		if englishWords[t.low] {
			score--
		}
	}
	return score > 0
}

type unit struct {
	family string
	factor float64
	offset float64 // added before the factor: degrees Fahrenheit
}

// symbols are case-sensitive; names are compared in lower case.
var symbols, names = unitTables()

func unitTables() (symbols, names map[string]unit) {
	symbols, names = map[string]unit{}, map[string]unit{}
	add := func(family string, factor float64, syms, words string) {
		for _, s := range strings.Fields(syms) {
			symbols[s] = unit{family: family, factor: factor}
		}
		for _, w := range strings.Fields(words) {
			names[w] = unit{family: family, factor: factor}
		}
	}
	add("length", 1e-9, "nm", "nanometre nanometres nanometer nanometers")
	add("length", 1e-6, "µm μm", "micrometre micrometres micrometer micrometers micron microns")
	add("length", 1e-3, "mm 毫米", "millimetre millimetres millimeter millimeters millimètres milímetros millimetri")
	add("length", 1e-2, "cm 厘米", "centimetre centimetres centimeter centimeters zentimeter centimètres centímetros centimetri")
	add("length", 1, "m 米", "metre metres meter meters metern mètre mètres metro metros metri")
	add("length", 1e3, "km 公里 千米 キロメートル", "kilometre kilometres kilometer kilometers kilometern kilomètre kilomètres kilómetro kilómetros chilometri")
	add("length", 0.0254, "", "inch inches zoll")
	add("length", 0.3048, "ft", "foot feet")
	add("length", 1609.344, "mi", "mile miles meilen")
	add("length", 9.4607e15, "ly 光年", "lightyear lightyears lichtjahre")
	add("mass", 1e-9, "µg μg mcg", "microgram micrograms")
	add("mass", 1e-6, "mg 毫克", "milligram milligrams milligramm milligrammes miligramos")
	add("mass", 1e-3, "g 克", "gram grams gramm grammes gramos grammi")
	add("mass", 1, "kg 公斤 千克", "kilogram kilograms kilo kilos kilogramm kilogrammes kilogramos chilogrammi")
	add("mass", 1000, "t 吨 トン", "tonne tonnes tonnen toneladas tonnellate")
	add("mass", 907.185, "", "ton tons")
	add("mass", 0.45359, "lb lbs", "pound-mass")
	add("time", 1e-12, "ps", "picosecond picoseconds pikosekunde pikosekunden picosecondes picosegundos")
	add("time", 1e-9, "ns", "nanosecond nanoseconds nanosekunde nanosekunden nanosecondes nanosegundos")
	add("time", 1e-6, "µs μs", "microsecond microseconds mikrosekunde mikrosekunden microsecondes microsegundos")
	add("time", 1e-3, "ms", "millisecond milliseconds millisekunde millisekunden millisecondes milisegundos")
	add("time", 1, "s sec 秒", "second seconds sekunden sekunde secondes segundos secondi")
	add("time", 60, "min 分钟 分鐘", "minute minutes minuten minutos minuti")
	add("time", 3600, "h hr hrs 小时 時間", "hour hours stunde stunden heure heures hora horas ora ore")
	add("time", 86400, "天 日間", "day days tag tage tagen jour jours día días giorno giorni")
	add("time", 604800, "周 週間", "week weeks woche wochen semaine semaines semana semanas settimana settimane")
	add("time", 2629800, "个月 ヶ月 か月 カ月", "month months monat monate monaten mois mes meses mese mesi")
	add("time", 31557600, "年間", "year years yr yrs jahr jahre jahren ans année années año años anno anni")
	add("time", 315576000, "", "decade decades jahrzehnte")
	add("area", 1, "m² m2 平方米", "quadratmeter")
	add("area", 1e4, "ha 公顷", "hectare hectares hektar hectáreas ettari")
	add("area", 1e6, "km² km2 平方公里 平方千米", "quadratkilometer")
	add("area", 4046.86, "", "acre acres")
	add("volume", 1e-6, "ml mL", "millilitre millilitres milliliter milliliters")
	add("volume", 1e-3, "l L", "litre litres liter liters litros litri")
	add("volume", 1, "m³ m3 立方米", "kubikmeter")
	add("volume", 1e-6, "cm³ cm3", "kubikzentimeter")
	add("volume", 1e9, "km³ km3", "kubikkilometer")
	add("energy", 1, "J", "joule joules")
	add("energy", 1e3, "kJ", "kilojoule kilojoules")
	add("energy", 4184, "kcal", "kilocalorie kilocalories")
	add("energy", 3600, "Wh", "watthour watthours wattstunde wattstunden wattheure wattheures")
	add("energy", 3.6e6, "kWh", "kilowatthour kilowatthours kilowattstunde kilowattstunden kilowattheure kilowattheures")
	add("energy", 3.6e9, "MWh", "megawatthour megawatthours megawattstunde megawattstunden mégawattheure mégawattheures")
	add("energy", 3.6e12, "GWh", "gigawatthour gigawatthours gigawattstunde gigawattstunden gigawattheure gigawattheures")
	add("energy", 3.6e15, "TWh", "terawatthour terawatthours terawattstunde terawattstunden térawattheure térawattheures")
	add("power", 1e-3, "mW", "milliwatt milliwatts")
	add("power", 1, "W", "watt watts")
	add("power", 1e3, "kW", "kilowatt kilowatts")
	add("power", 1e6, "MW", "megawatt megawatts")
	add("power", 1e9, "GW", "gigawatt gigawatts")
	add("length/time", 1609.344/3600, "mph", "")
	add("length/time", 1/3.6, "kph kmh", "")
	add("temperature", 1, "°C ℃", "celsius")
	add("frequency", 1, "Hz", "hertz")
	add("frequency", 1e3, "kHz", "kilohertz")
	add("frequency", 1e6, "MHz", "megahertz")
	add("frequency", 1e9, "GHz", "gigahertz")
	add("data", 1e3, "kB KB", "kilobyte kilobytes")
	add("data", 1e6, "MB", "megabyte megabytes")
	add("data", 1e9, "GB", "gigabyte gigabytes")
	add("data", 1e12, "TB", "terabyte terabytes")
	add("data", 0.125e6, "Mbit", "megabit megabits")
	add("data", 0.125e9, "Gbit", "gigabit gigabits")
	add("pressure", 1, "Pa", "pascal pascals")
	add("pressure", 1e2, "hPa mbar", "millibar millibars hectopascal")
	add("pressure", 1e3, "kPa", "kilopascal kilopascals")
	add("pressure", 1e6, "MPa", "megapascal megapascals")
	add("pressure", 1e5, "", "bar bars")
	add("voltage", 1, "V", "volt volts")
	add("voltage", 1e3, "kV", "kilovolt kilovolts")
	add("current", 1, "A", "ampere amperes amps")
	add("current", 1e-3, "mA", "milliampere milliamperes")
	add("loudness", 1, "dB", "decibel decibels")
	add("points", 0.01, "pp", "")
	add("money:USD", 1, "$ US$ USD 美元", "dollar dollars dólares dollari")
	add("money:USD", 0.01, "¢", "")
	add("money:EUR", 1, "€ EUR 欧元 ユーロ", "euro euros")
	add("money:GBP", 1, "£ GBP 英镑", "pound pounds")
	add("money:JPY", 1, "¥ JPY 円 日元", "yen")
	add("money:CNY", 1, "元 人民币 CNY RMB", "yuan renminbi")
	add("money:INR", 1, "₹ INR", "rupee rupees")
	add("money:CHF", 1, "CHF", "franken")
	symbols["°F"] = unit{family: "temperature", factor: 5. / 9, offset: -32}
	symbols["K"] = unit{family: "temperature", factor: 1, offset: -273.15}
	names["fahrenheit"] = symbols["°F"]
	names["kelvin"] = symbols["K"]
	for _, w := range []string{"km", "kg", "mg", "cm", "mm", "kwh", "mwh", "gwh", "twh", "usd", "eur", "gbp"} {
		for s, u := range symbols {
			if strings.EqualFold(s, w) {
				names[w] = u
			}
		}
	}
	return symbols, names
}

// squares and cubes raise the unit they stand by.
var (
	squares   = set("square sq quadrat carrés carré cuadrados cuadrado quadrati")
	hourWords = set("hour hours heure heures hora horas ora ore")
	cubes     = set("cubic cu kubik cubes cúbicos cubi")
	perWord   = set("/ per pro par por al")
)
