/**
 * Reports of the demonstration data set, in English and Chinese. They explain and never compute: no report states how much
 * any product sold, nor a difference or a percentage between two, so that an answer with a number must have computed it.
 */
export type DemoReport = {
	readonly id: string;
	readonly title: string;
	readonly text: string;
	readonly metadata: {
		readonly language: "en" | "zh";
		readonly quarter: string;
		readonly topic: string;
		readonly author: string;
	};
};

const about = (language: "en" | "zh", quarter: string, topic: string, author: string): DemoReport["metadata"] => ({
	language,
	quarter,
	topic,
	author,
});

export const DEMO_REPORTS: readonly DemoReport[] = [
	{
		id: "rep_2026q3_channel_promotion",
		title: "Product A: back-to-school channel promotion",
		text: "From July to September Product A was the lead item of the back-to-school promotion. The three largest online marketplaces gave it featured placement, campus stores in the East region bundled it with a carrying case, and retail partners received a volume rebate for orders placed before August. Store managers name the promotion as the main reason for the higher demand. No comparable promotion ran for Product B.",
		metadata: about("en", "2026-Q3", "promotion", "channel marketing"),
	},
	{
		id: "rep_2026q3_supply_shortage",
		title: "Product B: battery cell supply shortage",
		text: "A fire at the only qualified supplier of battery cells stopped deliveries for Product B at the beginning of July. Assembly ran on remaining stock and was idle for most of August. Retailers in the North and South regions reported empty shelves, and online orders were taken with a long delivery time that many customers did not accept. A second supplier was qualified in September and deliveries returned to plan at the end of that month.",
		metadata: about("en", "2026-Q3", "supply", "operations"),
	},
	{
		id: "rep_2026q3_customers",
		title: "Customer survey: why buyers chose Product A",
		text: "Buyers who had compared both speakers were asked what decided. Availability came first: many wanted Product B for its longer battery life and took Product A because it could be delivered at once. The promotion and the better protection against water followed. Price was rarely named. The survey says nothing about customers who left without buying.",
		metadata: about("en", "2026-Q3", "customers", "market research"),
	},
	{
		id: "rep_2026q3_regions",
		title: "Regional review of the third quarter",
		text: "The East region gained most from the campus bundles. The North and South regions suffered most from the missing stock of Product B, and part of that demand moved to Product A. The West region had neither campus stores nor many shops that carry Product B, and changed little.",
		metadata: about("en", "2026-Q3", "regions", "sales"),
	},
	{
		id: "rep_2026q3_headphones",
		title: "Product D loses shelf space to newer headphones",
		text: "Since May two discount chains have replaced Product D by newer models of other makers. Product C was not affected. The speakers are sold through other channels, so this development does not explain anything about Product A or Product B.",
		metadata: about("en", "2026-Q3", "competition", "sales"),
	},
	{
		id: "rep_2026q2_pricing",
		title: "Price review of the second quarter",
		text: "List prices of all speakers stayed as they were. A planned price cut of Product B was postponed because margins on the battery pack were already thin. Rebates to retailers followed the usual schedule.",
		metadata: about("en", "2026-Q2", "pricing", "finance"),
	},
	{
		id: "rep_2025q4_holidays",
		title: "Holiday season review",
		text: "Gift purchases lifted every product in November and December. Product A and Product B sold in similar numbers, as in the years before. The soundbar Product E profited from a television promotion by a partner.",
		metadata: about("en", "2025-Q4", "season", "sales"),
	},
	{
		id: "rep_2026q3_zh_promotion",
		title: "产品A第三季度渠道促销复盘",
		text: "七月至九月，产品A是开学季渠道促销的主推商品。三家最大的电商平台给予首页推荐位，华东校园门店推出赠送收纳包的组合套装，零售伙伴在八月前下单可享受返利。多数门店认为促销活动是销量上升的主要原因。同期产品B没有安排类似的促销。",
		metadata: about("zh", "2026-Q3", "promotion", "渠道市场部"),
	},
	{
		id: "rep_2026q3_zh_shortage",
		title: "产品B电芯供应短缺说明",
		text: "七月初，唯一合格的电芯供应商发生火灾，产品B的电芯断供。工厂先消耗库存，八月大部分时间停产，北区和南区门店出现缺货，线上订单交付周期过长，不少顾客取消订单。九月完成第二家供应商认证，月底恢复正常供货。",
		metadata: about("zh", "2026-Q3", "supply", "供应链部"),
	},
	{
		id: "rep_2026q3_zh_service",
		title: "第三季度售后与口碑分析",
		text: "两款音箱的退货率与往期接近，质量问题不是销量差异的原因。顾客评价中，产品A因防水和现货受到好评，产品B的续航仍然最受认可，但评论里反复提到买不到货。",
		metadata: about("zh", "2026-Q3", "customers", "客户服务部"),
	},
	{
		id: "rep_2026q3_zh_competition",
		title: "竞品与市场环境观察",
		text: "本季度主要竞品没有大幅降价，市场整体需求平稳。竞争环境对产品A和产品B的影响相近，不能解释两者之间的差距。耳机类产品D因折扣渠道换品而下滑。",
		metadata: about("zh", "2026-Q3", "competition", "市场研究部"),
	},
	{
		id: "rep_2026q4_zh_outlook",
		title: "第四季度展望",
		text: "产品B供货已经恢复，十月起补齐各区库存，计划在年末购物节投入新的促销资源。产品A的开学季活动结束后需求预计回到常态。展望基于当前订单，不构成承诺。",
		metadata: about("zh", "2026-Q4", "outlook", "销售部"),
	},
];
